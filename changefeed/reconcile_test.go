package changefeed

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

// The content of this host's next write does not matter.
func TestConflictIsDecidedByStoredOwnerEpochAndState(t *testing.T) {
	released := func(l *Lease) { l.disown(); l.Handoff, l.Continuation = "b/2", `"7"` }
	ours, lastWrite := func(*Lease) {}, released
	lost := func(owner string, epoch int64, state LeaseState) error { return &takenError{owner, epoch, state} }
	for name, c := range map[string]struct {
		mine, theirs func(*Lease)
		want         error
	}{
		"an answer that got lost":              {ours, ours, errRewritten},
		"the same, of the last write":          {lastWrite, released, nil},
		"an operator's write before the last":  {lastWrite, ours, errRewritten},
		"unowned, and this host continues":     {ours, (*Lease).disown, lost("", 2, LeaseLive)},
		"released by a later owner":            {lastWrite, func(l *Lease) { released(l); l.Epoch = 3 }, lost("", 3, LeaseLive)},
		"released for another host":            {lastWrite, func(l *Lease) { released(l); l.Handoff = "c/3" }, lost("", 2, LeaseLive)},
		"released at another position":         {lastWrite, func(l *Lease) { released(l); l.Continuation = `"8"` }, lost("", 2, LeaseLive)},
		"released as split":                    {lastWrite, func(l *Lease) { released(l); l.State = LeaseSplit }, lost("", 2, LeaseSplit)},
		"released by another product":          {(*Lease).disown, func(l *Lease) { l.disown(); l.foreign = true }, lost("", 2, LeaseLive)},
		"another's, handed over as ours is":    {lastWrite, func(l *Lease) { released(l); l.Owner = "b" }, lost("b", 2, LeaseLive)},
		"another's of the same epoch":          {ours, func(l *Lease) { l.Owner = "net" }, lost("net", 2, LeaseLive)},
		"another process's of the same name":   {ours, func(l *Lease) { l.Incarnation = "2" }, lost("a", 2, LeaseLive)},
		"taken again by this very process":     {ours, func(l *Lease) { l.Epoch = 3 }, lost("a", 3, LeaseLive)},
		"split, though the owner is this host": {ours, func(l *Lease) { l.State = LeaseSplit }, lost("a", 2, LeaseSplit)},
		"done, though the owner is this host":  {ours, func(l *Lease) { l.State = LeaseDone }, lost("a", 2, LeaseDone)},
	} {
		store := &funcStore{}
		_, k := keeperOf(t, store, &manualClock{now: time.Unix(100, 0)}, &Observer{})
		mine, theirs := ownedLease(), ownedLease()
		c.mine(&mine)
		c.theirs(&theirs)
		store.read = func() (Record, error) {
			r := theirs.encode()
			if theirs.foreign { // it leaves the signature of the owner before
				r.Body = bytes.Replace(r.Body, []byte(`"properties":{`), []byte(`"properties":{"signed":"a long ago",`), 1)
			}
			r.ETag = "theirs"
			return r, nil
		}
		before := k.snapshot().ETag
		err := k.reconcile(t.Context(), mine, 5)
		switch want := c.want.(type) { //nolint:errorlint // of the table
		case *takenError:
			if got := (*takenError)(nil); !errors.As(err, &got) || *got != *want || !errors.Is(err, ErrLeaseLost) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
			if k.snapshot().ETag != before {
				t.Errorf("%s: the ETag of a lost lease was taken over", name)
			}
		default:
			if !errors.Is(err, want) || err != nil && want == nil || k.snapshot().ETag != "theirs" || (k.stored == 5) != (want == nil) {
				t.Errorf("%s: %v with ETag %s, stored %d; want %v", name, err, k.snapshot().ETag, k.stored, want)
			}
		}
	}
}

// A missing or unreadable record means a lost lease; other errors are retried.
func TestConflictWithMissingOrUnreadableRecord(t *testing.T) {
	stale := ownedLease()
	stale.Epoch = 1
	for name, c := range map[string]struct {
		record Record
		err    error
		lost   bool
		cause  error
	}{
		"gone":           {err: ErrNotFound, lost: true},
		"not continued":  {record: Record{ID: "p..-FF", Body: []byte(`{"version":7}`)}, lost: true, cause: errUnreadable},
		"not readable":   {err: errTest, cause: errTest},
		"of another day": {record: stale.encode()},
	} {
		store := &funcStore{read: func() (Record, error) { return c.record, c.err }}
		_, k := keeperOf(t, store, &manualClock{now: time.Unix(100, 0)}, &Observer{})
		err := k.reconcile(t.Context(), ownedLease(), 5)
		if err == nil || errors.Is(err, ErrLeaseLost) != c.lost || errors.Is(err, errRewritten) || c.cause != nil && !errors.Is(err, c.cause) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
