package broker

import (
	"errors"
	"testing"
	"time"
)

func TestLockExpires(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{LockDuration: 30 * time.Second})
		r.send("q", msg("a"), msg("b"))
		c := r.receive("q", 2)
		got := c.want("a", "b")
		time.Sleep(20 * time.Second)
		ends, err := r.RenewLocks("q", []LockToken{got[1].LockToken})
		if err != nil || !ends[0].Equal(r.Now().Add(30*time.Second)) {
			t.Fatalf("renewed until %v: %v", ends, err)
		}
		time.Sleep(10 * time.Second)
		c.want()
		r.wantPeek("q", "a", "b")
		c.AddCredit(5)
		if again := c.want("a")[0]; again.DeliveryCount != 1 || again.LockToken == got[0].LockToken {
			t.Errorf("redelivery %+v", again)
		}
		if err := c.trySettle(got[0], Outcome{Kind: Complete}); !errors.Is(err, MessageLockLost) {
			t.Errorf("old token: %v", err)
		}
		if _, err := r.RenewLocks("q", []LockToken{got[1].LockToken, got[0].LockToken}); !errors.Is(err, MessageLockLost) {
			t.Errorf("renewal of a lost lock: %v", err)
		}
		c.settle(got[1], Complete)
		r.wantPeek("q", "a")
	})
}

func TestLockOutlivesReceiver(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{})
		r.send("q", msg("a"), msg("b"))
		c := r.receive("q", 2)
		got := c.want("a", "b")
		c.Close()
		other := r.receive("q", 5)
		other.want()
		done := make(chan error, 1)
		r.Settle("q", got[0].LockToken, Outcome{Kind: Complete}, func(err error) { done <- err })
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := r.ExpireLock("q", got[1].LockToken); err != nil {
			t.Error(err)
		}
		if d := other.want("b")[0]; d.DeliveryCount != 1 {
			t.Errorf("delivery %+v", d)
		}
		r.Settle("nowhere", got[0].LockToken, Outcome{Kind: Complete}, func(err error) { done <- err })
		if err := <-done; !errors.Is(err, NotFound) {
			t.Error(err)
		}
	})
}

func TestAdvanceMovesTheClock(t *testing.T) {
	modes(t, func(_ *testing.T, r *rig) {
		r.queue("q", Queue{})
		m := msg("later")
		m.ScheduledAt = r.Now().Add(time.Hour)
		r.send("q", m, msg("now"))
		c := r.receive("q", 5)
		c.want("now")
		r.Advance(59 * time.Second)
		c.want()
		r.Advance(time.Second) // the lock of "now"
		c.want("now")
		r.Advance(time.Hour)
		c.want("now", "later")
		time.Sleep(time.Minute) // real time goes on
		c.want("now")           // credit was 5
	})
}

func TestRenewOnSessionIsRefused(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		sessionQueue(r)
		r.send("q", of("x", "1"))
		d := r.accept("q", "x", 1).one()
		if _, err := r.RenewLocks("q", []LockToken{d.LockToken}); !errors.Is(err, NotAllowed) {
			t.Errorf("renewed: %v", err)
		}
	})
}

func TestLockedListStaysSorted(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{LockDuration: 5 * time.Minute})
		r.send("q", msg("long"))
		r.receive("q", 1).one()
		if _, err := r.UpdateQueue(t.Context(), Queue{Name: "q", LockDuration: 10 * time.Second}); err != nil {
			t.Fatal(err)
		}
		r.send("q", msg("short"))
		c := r.receive("q", 2)
		c.want("short")
		time.Sleep(10 * time.Second)
		c.want("short")
		c.AddCredit(9)
		time.Sleep(290 * time.Second)
		if got := c.take(); len(got) == 0 || string(got[len(got)-2].Payload) != "long" && string(got[len(got)-1].Payload) != "long" {
			t.Errorf("got %q", payloads(got))
		}
	})
}
