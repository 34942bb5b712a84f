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

// Lot is where parked events stand. It implements relay.ParkedStore, relay.DrainStore and what
// an operator needs. It is safe for concurrent use.
type Lot struct{ Store Store }

var (
	_ relay.ParkedStore = Lot{}
	_ relay.DrainStore  = Lot{}
)

// gateOf reads what commit has stored.
func gateOf(stored Gate) (relay.Gate, error) {
	var data document.GateData
	if err := json.Unmarshal(stored.Data, &data); err != nil {
		return relay.Gate{}, fmt.Errorf("decode the gate of key %s: %w", stored.Key, err)
	}
	return data.Gate(stored.Key, stored.Version), nil
}

// find returns the gate of key, NotFound if it is open, and those events with these ids.
func (l Lot) find(ctx context.Context, key string, ids []string) (g relay.Gate, events []relay.ParkedEvent, err error) {
	stored, events, err := l.Store.Find(ctx, key, ids)
	if err != nil {
		return g, nil, err
	}
	if stored.Version == "" {
		return g, nil, fault.Missing("gate of key", key)
	}
	g, err = gateOf(stored)
	return g, events, err
}

// commit stores g with the rest of a change, and returns it with its new version.
func (l Lot) commit(ctx context.Context, g relay.Gate, c *Change) (relay.Gate, error) {
	data, err := json.Marshal(document.GateDataOf(g))
	if err != nil {
		return g, fmt.Errorf("encode the gate of key %s: %w", g.Key, err)
	}
	c.Gate, c.Wanted = Gate{Key: g.Key, Version: g.Version, Data: data}, g.EffectiveIntent() != nil
	g.Version, err = l.Store.Commit(ctx, c)
	return g, err
}

// replace is commit for a gate that the caller has read: PreconditionFailed if it was changed
// since, NotFound if it is open.
func (l Lot) replace(ctx context.Context, g relay.Gate, c *Change) (relay.Gate, error) {
	stored, err := l.commit(ctx, g, c)
	if errors.Is(err, ErrChanged) {
		if _, err = l.Gate(ctx, g.Key); err == nil {
			err = fault.New(fault.PreconditionFailed, "", fmt.Sprintf("the gate of key %s was changed by somebody else", g.Key))
		}
	}
	return stored, err
}

// Closed implements relay.ParkedStore.
func (l Lot) Closed(ctx context.Context) (keys []string, err error) {
	gates, err := l.Store.Gates(ctx, false)
	for _, g := range gates {
		keys = append(keys, g.Key)
	}
	return keys, err
}

// Intents implements relay.DrainStore.
func (l Lot) Intents(ctx context.Context) ([]relay.Gate, error) { return l.gates(ctx, true) }

// Gates returns all closed gates, the one closed first in front.
func (l Lot) Gates(ctx context.Context) ([]relay.Gate, error) { return l.gates(ctx, false) }

func (l Lot) gates(ctx context.Context, wanted bool) (gates []relay.Gate, err error) {
	stored, err := l.Store.Gates(ctx, wanted)
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
func (l Lot) Gate(ctx context.Context, key string) (relay.Gate, error) {
	g, _, err := l.find(ctx, key, nil)
	return g, err
}

// SetIntent notes on the gate of key what an operator wants, in place of what may stand
// there. NotFound if the gate is open.
func (l Lot) SetIntent(ctx context.Context, key string, intent relay.Intent) (g relay.Gate, err error) {
	err = again(ctx, func() error {
		if g, err = l.Gate(ctx, key); err == nil {
			g.Intent = &intent
			g, err = l.commit(ctx, g, &Change{})
		}
		return err
	})
	return g, err
}

// First implements relay.DrainStore.
func (l Lot) First(ctx context.Context, key string, limit int) ([]relay.ParkedEvent, error) {
	return l.Store.First(ctx, key, limit)
}

// Skipped returns the records of the events of key that were left out, in their order.
func (l Lot) Skipped(ctx context.Context, key string) ([]relay.Skipped, error) {
	return l.Store.Skipped(ctx, key)
}

// Update implements relay.DrainStore.
func (l Lot) Update(ctx context.Context, g relay.Gate) (relay.Gate, error) {
	return l.replace(ctx, g, &Change{})
}

// Remove implements relay.DrainStore.
func (l Lot) Remove(ctx context.Context, g relay.Gate, events []relay.ParkedEvent, skipped *relay.Skipped) (relay.Gate, error) {
	g.MarkDone(events)
	return l.replace(ctx, g, &Change{Remove: idsOf(events), Skipped: skipped})
}

// Open implements relay.DrainStore.
func (l Lot) Open(ctx context.Context, g relay.Gate) error {
	_, err := l.replace(ctx, g, &Change{Open: true})
	return err
}
