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
