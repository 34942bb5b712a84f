package changefeed

import (
	"context"
	"testing"
	"time"
)

// oneRecord is a lease store that takes every replace.
type oneRecord struct{ LeaseStore }

func (oneRecord) Replace(context.Context, Record) (string, error) { return "next", nil }

// What a write has stored makes no other one due.
func TestWhatIsStoredIsNotDue(t *testing.T) {
	c := &manualClock{now: time.Unix(100, 0)}
	o, err := (&Options{Clock: c, Now: c.Now}).resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, f := newFence(t.Context(), c.watch(), c.watch().read(), o.Expiry-o.margin())
	k := newKeeper(&env{store: oneRecord{}, opts: o, clock: c, obs: &Observer{}}, Lease{ID: "a"}, f, c.now, newSignal())
	for name, change := range map[string]func(){
		"many items": func() { k.advance(`"1"`, checkpointItems, 1, 1) },
		"an attempt": func() { k.change(func(*Lease) urgency { return now }) },
	} {
		if change(); k.due() != 0 {
			t.Errorf("%s: due in %s", name, k.due())
		}
		if err := k.write(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := k.due(); d < time.Second {
			t.Errorf("%s: the next write is due in %s", name, d)
		}
	}
}

// slowRecord is a lease store that takes its time for a replace.
type slowRecord struct {
	LeaseStore
	meanwhile func()
}

func (s slowRecord) Replace(context.Context, Record) (string, error) {
	s.meanwhile()
	return "next", nil
}

// What is handled during a write counts for the next one.
func TestWhatIsHandledDuringAWriteCounts(t *testing.T) {
	c := &manualClock{now: time.Unix(100, 0)}
	o, err := (&Options{Clock: c, Now: c.Now}).resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, f := newFence(t.Context(), c.watch(), c.watch().read(), o.Expiry-o.margin())
	store := &slowRecord{}
	k := newKeeper(&env{store: store, opts: o, clock: c, obs: &Observer{}}, Lease{ID: "a"}, f, c.now, newSignal())
	store.meanwhile = func() { k.advance(`"2"`, checkpointItems-1, 2, 2) }
	k.advance(`"1"`, 100, 1, 1)
	if err := k.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := k.due(); d == 0 {
		t.Errorf("due at once with %d items", k.items)
	}
	if k.advance(`"3"`, 1, 3, 3); k.due() != 0 {
		t.Errorf("%d items were handled since what the last write has stored, and the next is due in %s", checkpointItems, k.due())
	}
}
