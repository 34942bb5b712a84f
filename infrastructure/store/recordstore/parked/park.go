package parked

import (
	"context"
	"errors"
	"time"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/recordstore"
)

// Limits of one commit. Google's emulator of Firestore accepts messages up to 4 MiB.
const (
	commitEvents = 400
	commitBytes  = 3 << 20 // of documents and errors
)

// retryWait is the wait before a change is repeated after ErrChanged.
const retryWait = 20 * time.Millisecond

// untilUnchanged repeats try until it does not return ErrChanged.
func untilUnchanged(ctx context.Context, try func() error) error {
	for {
		err := try()
		if !errors.Is(err, ErrChanged) {
			return err
		}
		if ended := recordstore.Pause(ctx, retryWait); ended != nil {
			return fault.Wrap(fault.Unavailable, "canceled", "the request was canceled", errors.Join(ended, err))
		}
	}
}

func idsOf(events []relay.ParkedEvent) []string {
	ids := make([]string, len(events))
	for i := range events {
		ids[i] = events[i].ID
	}
	return ids
}

// Park implements relay.ParkedStore.
func (s Store) Park(ctx context.Context, key string, events []relay.ParkedEvent, closing *relay.Closing) (done relay.ParkResult, err error) {
	for first := true; first || len(events) > 0; first = false {
		var some relay.ParkResult
		var taken int
		err := untilUnchanged(ctx, func() (err error) {
			some, taken, err = s.parkSome(ctx, key, events[:min(len(events), commitEvents)], closing)
			return err
		})
		if err != nil {
			return done, err
		}
		done.Parked, done.Existing = append(done.Parked, some.Parked...), append(done.Existing, some.Existing...)
		events = events[taken:]
	}
	return done, nil
}

// parkSome parks the first of events, as many as one commit allows, and returns their number.
func (s Store) parkSome(ctx context.Context, key string, events []relay.ParkedEvent, closing *relay.Closing) (done relay.ParkResult, taken int, err error) {
	g, before, err := s.find(ctx, key, idsOf(events))
	switch {
	case fault.Is(err, fault.NotFound) && closing == nil:
		return done, 0, relay.ErrGateOpen
	case fault.Is(err, fault.NotFound):
		g = relay.NewGate(key, *closing)
	case err != nil:
		return done, 0, err
	}
	there := make(map[string]relay.ParkedEvent, len(before))
	for _, e := range before {
		there[e.ID] = e
	}
	size := 0
	for _, e := range events {
		e.Key = key
		next := g
		if !next.Admit(&e) {
			taken++
			continue
		}
		if have, known := there[e.ID]; known {
			done.Existing = append(done.Existing, have)
			taken++
			continue
		}
		if size += len(e.Document) + len(e.Error); size > commitBytes && len(done.Parked) > 0 {
			break
		}
		g, there[e.ID] = next, e
		done.Parked = append(done.Parked, e)
		taken++
	}
	if len(done.Parked) > 0 {
		_, err = s.commit(ctx, g, &Change{Put: done.Parked})
	}
	return done, taken, err
}
