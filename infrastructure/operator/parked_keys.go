package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

// Reason summarises the keys that are parked for one reason.
type Reason struct {
	Reason string
	Keys   int
	Events int64
	// Wanted counts the keys with an intent that no relay has carried out yet.
	Wanted int
	Oldest time.Time
	// Example is the error of one of them.
	Example string
}

// Reasons groups gates by the reason of their closing, the most frequent first.
func Reasons(gates []relay.Gate) []Reason {
	byName := map[string]*Reason{}
	var all []*Reason
	for i := range gates {
		g := &gates[i]
		r, ok := byName[g.Closing.Reason]
		if !ok {
			r = &Reason{Reason: g.Closing.Reason, Oldest: g.Closing.At}
			byName[g.Closing.Reason] = r
			all = append(all, r)
		}
		r.Keys++
		r.Events += g.Events
		if g.Intent != nil {
			r.Wanted++
		}
		if g.Closing.At.Before(r.Oldest) {
			r.Oldest = g.Closing.At
		}
		r.Example = cmp.Or(r.Example, g.Error, g.Closing.Error)
	}
	slices.SortStableFunc(all, func(a, b *Reason) int {
		return cmp.Or(cmp.Compare(b.Keys, a.Keys), strings.Compare(a.Reason, b.Reason))
	})
	reasons := make([]Reason, len(all))
	for i, r := range all {
		reasons[i] = *r
	}
	return reasons
}

// GatesFor returns the gates that are closed for reason; "" for all.
func (o *Operator) GatesFor(ctx context.Context, reason string) ([]relay.Gate, error) {
	gates, err := o.Parked.Gates(ctx)
	if err != nil || reason == "" {
		return gates, err
	}
	return slices.DeleteFunc(gates, func(g relay.Gate) bool { return g.Closing.Reason != reason }), nil
}

// ParkedKey is a parked key with its parked events.
type ParkedKey struct {
	Gate    relay.Gate
	Line    []relay.ParkedEvent // the first parked events, in order
	Skipped []relay.Skipped     // records of skipped events
}

// shownBytes bounds the documents of the parked events that an operator reads at a time.
const shownBytes = 64 << 20

// ParkedKey reads a parked key with its first limit events. NotFound if its gate is open.
func (o *Operator) ParkedKey(ctx context.Context, key string, limit int) (ParkedKey, error) {
	var p ParkedKey
	var err error
	if p.Gate, err = o.Parked.Gate(ctx, key); err != nil {
		return p, err
	}
	if p.Line, err = o.Parked.First(ctx, key, limit, shownBytes); err != nil {
		return p, err
	}
	p.Skipped, err = o.Parked.Skipped(ctx, key)
	return p, err
}

// answerTimeout bounds one call of Note, which makes a few requests.
const answerTimeout = 30 * time.Second

// maxNote limits the texts of an intent in bytes, because the intent is stored in one transaction
// with an event that may need nearly all the room.
const maxNote = 2 << 10

// Note records an intent on the gate of key. The relay that owns the key carries it out. Fault:
// Invalid if the texts of the intent are too long.
func (o *Operator) Note(ctx context.Context, key string, intent relay.Intent) (relay.Gate, error) {
	if err := stamp(&intent); err != nil {
		return relay.Gate{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return o.Parked.SetIntent(ctx, key, intent)
}

// stamp sets the time of a new intent, or returns a fault if its texts are too long.
func stamp(intent *relay.Intent) error {
	if size := len(intent.Note) + len(intent.By); size > maxNote {
		return fault.New(fault.Invalid, "", fmt.Sprintf("the note and the name have %d bytes: shorten them to %d", size, maxNote))
	}
	intent.At = time.Now().UTC().Round(time.Millisecond)
	return nil
}

// NoteAll calls Note for each gate and then noted. Gates that have opened since are skipped.
// The error contains the number of gates noted before it.
func (o *Operator) NoteAll(ctx context.Context, gates []relay.Gate, intent relay.Intent, noted func(relay.Gate)) error {
	done := 0
	for _, g := range gates {
		g, err := o.Note(ctx, g.Key, intent)
		if fault.Is(err, fault.NotFound) {
			continue // the gate is open
		}
		if err != nil {
			return fmt.Errorf("after %d of %d keys: %w", done, len(gates), err)
		}
		done++
		noted(g)
	}
	return nil
}

// FirstInLine returns Conflict if event is not the first parked event of key, because a relay
// would refuse to skip it; NotFound if the key is not parked.
func (o *Operator) FirstInLine(ctx context.Context, key, event string) error {
	if _, err := o.Parked.Gate(ctx, key); err != nil {
		return err
	}
	first, err := o.Parked.First(ctx, key, 1, shownBytes)
	switch {
	case err != nil:
		return err
	case len(first) == 0:
		return fault.New(fault.Conflict, "not_first", fmt.Sprintf("event %s is not the first in line of key %s", event, key))
	case first[0].ID != event:
		return fault.New(fault.Conflict, "not_first", fmt.Sprintf("event %s is not the first in line of key %s, that is %s", event, key, first[0].ID))
	}
	return nil
}

// ParkedComparison compares the first events of a parked key with the store.
type ParkedComparison struct {
	Events int      // compared
	Differ []string // ids of events with other content in the store
	Gone   []string // ids of events that are no longer stored
}

// comparedEvents bounds the comparison, because each event is one read of the store.
const comparedEvents = 100

// CompareParked compares the first events of a parked key with their documents in the store.
func (o *Operator) CompareParked(ctx context.Context, key string) (ParkedComparison, error) {
	var c ParkedComparison
	events, err := o.Parked.First(ctx, key, comparedEvents, shownBytes)
	if err != nil {
		return c, err
	}
	for _, e := range events {
		document, err := o.store.Events.Event(ctx, key, e.ID)
		switch {
		case fault.Is(err, fault.NotFound):
			c.Gone = append(c.Gone, e.ID)
		case err != nil:
			return c, err
		case !relay.SameContent(o.store.Decoder, e.Document, document):
			c.Differ = append(c.Differ, e.ID)
		}
		c.Events++
	}
	return c, nil
}
