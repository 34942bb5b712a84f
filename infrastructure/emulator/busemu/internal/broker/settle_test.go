package broker

import (
	"errors"
	"testing"
	"time"
)

func TestPeekLockAndComplete(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{})
		r.send("q", msg("a"), msg("b"))
		c := r.receive("Q", 1)
		a := c.want("a")[0]
		if a.SequenceNumber != 1 || a.DeliveryCount != 0 || !a.LockedUntil.Equal(r.Now().Add(time.Minute)) {
			t.Errorf("delivery %+v", a)
		}
		c.settle(a, Complete)
		if err := c.trySettle(a, Outcome{Kind: Complete}); !errors.Is(err, MessageLockLost) {
			t.Errorf("second settlement: %v", err)
		}
		c.AddCredit(5)
		c.settle(c.want("b")[0], Complete)
		r.wantPeek("q")
		r.send("q", msg("c"))
		c.want("c")
	})
}

func TestTopicToSessions(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.topic("t", Topic{RequiresDuplicateDetection: true})
		r.subscription("t", "all", Subscription{RequiresSession: true})
		r.subscription("t", "plain", Subscription{})
		r.send("t", of("x", "1"), of("y", "2"), of("x", "3"))
		r.send("t", of("x", "1"), of("x", "4"))
		r.wantPeek("t/Subscriptions/plain", "1", "2", "3", "4")
		x := r.accept("t/subscriptions/all", "x", 10)
		y := r.accept("t/subscriptions/all", "y", 10)
		for _, d := range x.want("1", "3", "4") {
			x.settle(d, Complete)
		}
		if d := y.want("2")[0]; d.SequenceNumber != 2 || d.EnqueuedSequenceNumber != 2 {
			t.Errorf("delivery %+v", d)
		}
		n, err := r.Counters("t")
		if err != nil || n.Accepted != 5 || n.Duplicates != 1 || n.Completed != 3 {
			t.Errorf("counters %+v %v", n, err)
		}
	})
}

func TestDeadLetterAfterTooManyDeliveries(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{MaxDeliveryCount: 2})
		r.send("q", msg("a"))
		c := r.receive("q", 10)
		first := c.one()
		c.settle(first, Abandon)
		second := c.one()
		if second.DeliveryCount != 1 {
			t.Errorf("delivery count %d", second.DeliveryCount)
		}
		c.settle(second, Abandon)
		c.want()
		d := r.receive("q/$DeadLetterQueue", 1).one()
		if d.DeadLetterReason != "MaxDeliveryCountExceeded" || d.DeliveryCount != 2 || d.DeadLetterSource != "q" {
			t.Errorf("dead letter %+v", d)
		}
	})
}

func TestRestartKeepsEverything(t *testing.T) {
	durable(t, func(t *testing.T, r *rig) {
		r.topic("t", Topic{RequiresDuplicateDetection: true})
		r.subscription("t", "s", Subscription{RequiresSession: true})
		r.subscription("t", "p", Subscription{})
		r.send("t", of("x", "1"), of("x", "2"), of("x", "3"))
		c := r.accept("t/subscriptions/s", "x", 2)
		got := c.want("1", "2")
		c.settle(got[1], Complete)
		c.settle(got[0], Abandon)
		r.crash()
		r.send("t", of("x", "3"), of("x", "4"))
		c = r.accept("t/subscriptions/s", "x", 10)
		got = c.want("1", "3", "4")
		if got[0].DeliveryCount != 1 || got[0].SequenceNumber != 1 || got[2].SequenceNumber != 4 {
			t.Errorf("after restart: %+v", got)
		}
		r.wantPeek("t/subscriptions/p", "1", "2", "3", "4")
	})
}
