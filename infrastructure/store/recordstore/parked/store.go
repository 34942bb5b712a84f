package parked

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/document"
)

// Store implements relay.ParkedStore, relay.DrainStore and the commands of an operator. It is
// safe for concurrent use.
type Store struct{ Records Records }

func gateOf(stored Gate) (relay.Gate, error) {
	var data document.GateData
	if err := json.Unmarshal(stored.Data, &data); err != nil {
		return relay.Gate{}, fmt.Errorf("decode the gate of key %s: %w", stored.Key, err)
	}
	return data.Gate(stored.Key, stored.Version), nil
}

// find returns the gate of key and its events with these ids, or NotFound if the gate is open.
func (s Store) find(ctx context.Context, key string, ids []string) (g relay.Gate, events []relay.ParkedEvent, err error) {
	stored, events, err := s.Records.Find(ctx, key, ids)
	if err != nil {
		return g, nil, err
	}
	if stored.Version == "" {
		return g, nil, fault.Missing("gate of key", key)
	}
	g, err = gateOf(stored)
	return g, events, err
}

// commit stores g with the rest of a change and returns g with its new version.
func (s Store) commit(ctx context.Context, g relay.Gate, c *Change) (relay.Gate, error) {
	data, err := json.Marshal(document.GateDataOf(g))
	if err != nil {
		return g, fmt.Errorf("encode the gate of key %s: %w", g.Key, err)
	}
	c.Gate, c.Wanted = Gate{Key: g.Key, Version: g.Version, Data: data}, g.EffectiveIntent() != nil
	g.Version, err = s.Records.Commit(ctx, c)
	return g, err
}

// replace commits a change of a gate that the caller has read. Faults: PreconditionFailed if it
// has changed since, NotFound if it is open.
func (s Store) replace(ctx context.Context, g relay.Gate, c *Change) (relay.Gate, error) {
	stored, err := s.commit(ctx, g, c)
	if errors.Is(err, ErrChanged) {
		if _, err = s.Gate(ctx, g.Key); err == nil {
			err = fault.New(fault.PreconditionFailed, "", fmt.Sprintf("the gate of key %s was changed in the meantime", g.Key))
		}
	}
	return stored, err
}

// Closed implements relay.ParkedStore.
func (s Store) Closed(ctx context.Context) (keys []string, err error) {
	gates, err := s.Records.Gates(ctx, false)
	for _, g := range gates {
		keys = append(keys, g.Key)
	}
	return keys, err
}

// Intents implements relay.DrainStore.
func (s Store) Intents(ctx context.Context) ([]relay.Gate, error) { return s.gates(ctx, true) }

// Gates returns all closed gates in the order in which they were closed.
func (s Store) Gates(ctx context.Context) ([]relay.Gate, error) { return s.gates(ctx, false) }

func (s Store) gates(ctx context.Context, wanted bool) (gates []relay.Gate, err error) {
	stored, err := s.Records.Gates(ctx, wanted)
	for _, s := range stored {
		g, wrong := gateOf(s)
		gates, err = append(gates, g), errors.Join(err, wrong)
	}
	slices.SortFunc(gates, func(a, b relay.Gate) int {
		return cmp.Or(a.Closing.At.Compare(b.Closing.At), cmp.Compare(a.Key, b.Key))
	})
	return gates, err
}

// Gate implements relay.DrainStore.
func (s Store) Gate(ctx context.Context, key string) (relay.Gate, error) {
	g, _, err := s.find(ctx, key, nil)
	return g, err
}

// SetIntent stores the intent of an operator in the gate of key and replaces an earlier one.
// Fault: NotFound if the gate is open.
func (s Store) SetIntent(ctx context.Context, key string, intent relay.Intent) (g relay.Gate, err error) {
	err = untilUnchanged(ctx, func() error {
		if g, err = s.Gate(ctx, key); err == nil {
			g.Intent = &intent
			g, err = s.commit(ctx, g, &Change{})
		}
		return err
	})
	return g, err
}

// First implements relay.DrainStore.
func (s Store) First(ctx context.Context, key string, limit, maxBytes int) ([]relay.ParkedEvent, error) {
	return s.Records.First(ctx, key, limit, maxBytes)
}

// Skipped returns the records of the skipped events of key, in their order.
func (s Store) Skipped(ctx context.Context, key string) ([]relay.Skipped, error) {
	return s.Records.Skipped(ctx, key)
}

// SkippedAmong returns those of the events that were skipped.
func (s Store) SkippedAmong(ctx context.Context, events []relay.EventRef) (map[relay.EventRef]bool, error) {
	return s.Records.SkippedAmong(ctx, events)
}

// Update implements relay.DrainStore.
func (s Store) Update(ctx context.Context, g relay.Gate) (relay.Gate, error) {
	return s.replace(ctx, g, &Change{})
}

// Remove implements relay.DrainStore.
func (s Store) Remove(ctx context.Context, g relay.Gate, events []relay.ParkedEvent, skipped *relay.Skipped) (relay.Gate, error) {
	g.Events -= int64(len(events))
	return s.replace(ctx, g, &Change{Remove: idsOf(events), Skipped: skipped})
}

// Replace replaces the document of a parked event of g and stores the gate like Update.
func (s Store) Replace(ctx context.Context, g relay.Gate, e relay.ParkedEvent) (relay.Gate, error) {
	return s.replace(ctx, g, &Change{Replace: &e})
}

// Open implements relay.DrainStore.
func (s Store) Open(ctx context.Context, g relay.Gate) error {
	_, err := s.replace(ctx, g, &Change{Open: true})
	return err
}
