package broker

import (
	"errors"
	"testing"
	"testing/synctest"
)

func (r *rig) commit(work ...Work) error {
	r.t.Helper()
	var result error
	called := 0
	r.Commit(work, func(err error) { result, called = err, called+1 })
	synctest.Wait()
	if called != 1 {
		r.t.Fatalf("done was called %d times", called)
	}
	return result
}

// TestCommit: all work of a transaction happens, also after a crash.
func TestCommit(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("in", Queue{})
		r.queue("out", Queue{RequiresDuplicateDetection: true})
		r.send("in", msg("a"), msg("b"), msg("c"), msg("d"))
		c := r.receive("in", 4)
		got := c.taken()
		again := msg("again")
		if err := r.commit(
			Work{Path: "in", Token: got[0].LockToken, Outcome: Outcome{Kind: Complete}},
			Work{Path: "out", Batch: []Message{msg("x"), msg("y")}},
			Work{Path: "in", Token: got[1].LockToken, Outcome: Outcome{Kind: DeadLetter, Reason: "bad"}},
			Work{Path: "in", Token: got[2].LockToken, Outcome: Outcome{Kind: Abandon}},
			Work{Path: "in", Batch: []Message{again}},
		); err != nil {
			t.Fatal(err)
		}
		if r.fs != nil {
			r.crash()
		}
		r.wantPeek("in", "c", "d", "again")
		r.wantPeek("in/$deadletterqueue", "b")
		r.wantPeek("out", "x", "y")
	})
}

// TestFailedCommitChangesNothing: no work of a refused transaction happens.
func TestFailedCommitChangesNothing(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("in", Queue{})
		r.queue("sessions", Queue{RequiresSession: true})
		r.send("in", msg("a"), msg("b"))
		c := r.receive("in", 2)
		got := c.taken()
		complete := Outcome{Kind: Complete}
		for name, last := range map[string]struct {
			work Work
			want Condition
		}{
			"no lock":       {Work{Path: "in", Token: LockToken{1}, Outcome: complete}, MessageLockLost},
			"twice":         {Work{Path: "in", Token: got[0].LockToken, Outcome: complete}, MessageLockLost},
			"no entity":     {Work{Path: "nobody", Batch: []Message{msg("x")}}, NotFound},
			"no session id": {Work{Path: "sessions", Batch: []Message{msg("x")}}, NotAllowed},
			"odd outcome":   {Work{Path: "in", Token: got[1].LockToken}, NotImplemented},
		} {
			err := r.commit(Work{Path: "in", Batch: []Message{msg("y")}}, Work{Path: "in", Token: got[0].LockToken, Outcome: complete}, last.work)
			if !errors.Is(err, last.want) {
				t.Errorf("%s: %v", name, err)
			}
			r.wantPeek("in", "a", "b")
		}
		c.settle(got[0], Complete) // the locks are unchanged
		c.settle(got[1], Complete)
		r.wantPeek("in")
	})
}
