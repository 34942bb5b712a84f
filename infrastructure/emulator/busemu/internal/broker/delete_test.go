package broker

import (
	"slices"
	"testing"
	"time"
)

func (r *rig) deleteMessages(path string, o DeleteOptions) int {
	r.t.Helper()
	done := make(chan int, 1)
	r.DeleteMessages(path, o, func(n int, err error) {
		if err != nil {
			r.t.Error(err)
		}
		done <- n
	})
	return <-done
}

func TestDeleteMessages(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{})
		r.send("q", msg("locked"), msg("1"), msg("2"), msg("3"))
		c := r.receive("q", 1)
		held := c.one()
		scheduled := msg("scheduled")
		scheduled.ScheduledAt = r.Now().Add(time.Hour)
		r.send("q", scheduled)
		time.Sleep(time.Second)
		at := r.Now()
		r.send("q", msg("new"))
		if n := r.deleteMessages("q", DeleteOptions{Count: 2, Before: at}); n != 2 {
			t.Errorf("deleted %d", n)
		}
		r.wantPeek("q", "locked", "3", "scheduled", "new")
		if n := r.deleteMessages("q", DeleteOptions{Count: 9, Before: at}); n != 1 {
			t.Errorf("deleted %d", n)
		}
		c.settle(held, Complete)
		if r.fs != nil {
			r.crash()
		}
		r.wantPeek("q", "scheduled", "new")
	})
}

func TestDeleteMessagesOfSessions(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{RequiresSession: true})
		r.send("q", of("a", "a1"), of("b", "b1"), of("a", "a2"), of("c", "c1"), of("b", "b2"))
		time.Sleep(time.Second)
		r.accept("q", "b", 0)
		a := "a"
		if n := r.deleteMessages("q", DeleteOptions{Count: 1, Before: r.Now(), Session: &a}); n != 1 {
			t.Errorf("deleted %d", n)
		}
		r.wantPeek("q", "b1", "a2", "c1", "b2")
		if n := r.deleteMessages("q", DeleteOptions{Count: 9, Before: r.Now()}); n != 2 {
			t.Errorf("deleted %d, want those of a and c", n)
		}
		r.wantPeek("q", "b1", "b2")
		if ids, err := r.ListSessions("q", ListOptions{}); err != nil || !slices.Equal(ids, []string{"b"}) {
			t.Errorf("left are the sessions %q, %v", ids, err)
		}
	})
}
