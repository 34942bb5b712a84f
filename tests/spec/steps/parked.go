package steps

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/domain/fault"
	"feedbox/infrastructure/relay/relayport"
)

// Parked wraps a store of parked events. A request is applied before its context ends, or never:
// this is an assumption of Relay.tla, which Before of the host's faults has to keep.
func (p *Ports) Parked(s relayport.Parked) relayport.Parked { return recordedParked{s, p} }

type recordedParked struct {
	relayport.Parked
	*Ports
}

func unavailable(err error) error {
	return fault.Wrap(fault.Unavailable, "store_unavailable", "the store does not answer", err)
}

// call makes a call with an effect, and records it unless it failed.
func (s recordedParked) call(ctx context.Context, step RelayStep, do func(step *RelayStep) error) (err error) {
	if err := s.faults.Before(ctx, step.Do); err != nil {
		return unavailable(err)
	}
	s.log.Do(func() RelayStep {
		step.Host = s.host
		if err = do(&step); err != nil && !errors.Is(err, relay.ErrGateOpen) {
			step.Do = "nothing"
		}
		return step
	})
	if err == nil {
		if err = s.faults.After(ctx, step.Do); err != nil {
			return unavailable(err)
		}
	}
	return err
}

func (s recordedParked) Closed(ctx context.Context) (keys []string, err error) {
	err = s.call(ctx, RelayStep{Do: "listed"}, func(*RelayStep) (err error) {
		keys, err = s.Parked.Closed(ctx)
		return err
	})
	return keys, err
}

func (s recordedParked) Park(ctx context.Context, key string, events []relay.ParkedEvent, closing *relay.Closing) (done relay.ParkResult, err error) {
	step := RelayStep{Do: "park", Key: strings.Clone(key), IDs: parkedIDs(events)}
	if closing != nil {
		step.Kind, step.Placed = "refused", events[0].Progress.LSN > 0
		if closing.Auto {
			step.Kind = "auto"
		}
	}
	err = s.call(ctx, step, func(step *RelayStep) (err error) {
		done, err = s.Parked.Park(ctx, key, events, closing)
		step.Stored, step.Open = parkedIDs(done.Parked), errors.Is(err, relay.ErrGateOpen)
		return err
	})
	if err == nil {
		s.log.Do(func() RelayStep { return RelayStep{Host: s.host, Do: "parked", Key: step.Key, IDs: step.IDs} })
	}
	return done, err
}

func (s recordedParked) Intents(ctx context.Context) ([]relay.Gate, error) {
	if err := s.faults.Before(ctx, "intents"); err != nil {
		return nil, unavailable(err)
	}
	return s.Parked.Intents(ctx)
}

func (s recordedParked) First(ctx context.Context, key string, limit, maxBytes int) (events []relay.ParkedEvent, err error) {
	err = s.call(ctx, RelayStep{Do: "first", Key: strings.Clone(key)}, func(step *RelayStep) (err error) {
		events, err = s.Parked.First(ctx, key, limit, maxBytes)
		step.IDs = parkedIDs(events)
		return err
	})
	return events, err
}

// intentOf sets the state of a gate after a change.
func (s *RelayStep) intentOf(g relay.Gate) {
	s.Auto, s.Kind = g.Closing.Auto, "none"
	if g.Intent != nil {
		s.Kind = string(g.Intent.Verb)
	}
}

func (s recordedParked) Update(ctx context.Context, g relay.Gate) (now relay.Gate, err error) {
	err = s.call(ctx, RelayStep{Do: "update", Key: strings.Clone(g.Key)}, func(step *RelayStep) (err error) {
		now, err = s.Parked.Update(ctx, g)
		step.intentOf(now)
		return err
	})
	return now, err
}

func (s recordedParked) Remove(ctx context.Context, g relay.Gate, events []relay.ParkedEvent, skipped *relay.Skipped) (now relay.Gate, err error) {
	err = s.call(ctx, RelayStep{Do: "remove", Key: strings.Clone(g.Key), IDs: parkedIDs(events), Open: skipped != nil}, func(step *RelayStep) (err error) {
		now, err = s.Parked.Remove(ctx, g, events, skipped)
		step.intentOf(now)
		return err
	})
	return now, err
}

func (s recordedParked) Open(ctx context.Context, g relay.Gate) error {
	return s.call(ctx, RelayStep{Do: "open", Key: strings.Clone(g.Key)}, func(*RelayStep) error { return s.Parked.Open(ctx, g) })
}

func (s recordedParked) SetIntent(ctx context.Context, key string, intent relay.Intent) (now relay.Gate, err error) {
	err = s.call(ctx, RelayStep{Do: "intent", Key: key}, func(step *RelayStep) (err error) {
		now, err = s.Parked.SetIntent(ctx, key, intent)
		step.intentOf(now)
		return err
	})
	return now, err
}

func propertiesOf(r changefeed.Record) map[string]string {
	var doc struct {
		Properties map[string]string `json:"properties"`
	}
	_ = json.Unmarshal(r.Body, &doc) // a record that no one can read has no properties
	return doc.Properties
}

func aheadOf(text string) (a changefeed.Ahead) {
	_ = json.Unmarshal([]byte(text), &a) // absent is none
	return a
}
