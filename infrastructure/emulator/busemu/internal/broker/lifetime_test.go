package broker

import (
	"errors"
	"testing"
	"time"
)

func TestTimeToLive(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("drop", Queue{DefaultTTL: 10 * time.Second})
		r.queue("keep", Queue{DeadLetteringOnExpiration: true})
		short := msg("short")
		short.TTL = 5 * time.Second
		long := msg("long")
		long.TTL = time.Hour
		for _, q := range []string{"drop", "keep"} {
			r.send(q, short, long, msg("none"))
		}
		ds, _ := r.Peek("drop", PeekOptions{Count: 9})
		for i, want := range []time.Duration{5 * time.Second, 10 * time.Second, 10 * time.Second} {
			if ds[i].TTL != want || !ds[i].ExpiresAt.Equal(r.Now().Add(want)) {
				t.Errorf("%s lives %v until %v", ds[i].Payload, ds[i].TTL, ds[i].ExpiresAt)
			}
		}
		time.Sleep(5*time.Second - 1)
		r.wantPeek("keep", "short", "long", "none")
		time.Sleep(time.Nanosecond)
		r.wantPeek("drop", "long", "none")
		r.wantPeek("keep", "long", "none")
		if d := r.receive("keep/$deadletterqueue", 1).one(); d.DeadLetterReason != "TTLExpiredException" {
			t.Errorf("dead letter %+v", d)
		}
		time.Sleep(5 * time.Second)
		r.wantPeek("drop")
		if r.fs != nil {
			r.crash()
		}
		time.Sleep(time.Hour)
		r.wantPeek("keep", "none")
		r.wantPeek("keep/$deadletterqueue", "short", "long") // these live for ever
		r.wantPeek("drop/$deadletterqueue")
	})
}

func TestLockedMessageExpiresWhenItComesBack(t *testing.T) {
	modes(t, func(_ *testing.T, r *rig) {
		r.queue("q", Queue{DefaultTTL: 10 * time.Second, DeadLetteringOnExpiration: true})
		r.send("q", msg("a"), msg("b"), msg("c"))
		c := r.receive("q", 3)
		got := c.want("a", "b", "c")
		c.settle(got[2], Defer)
		time.Sleep(20 * time.Second)
		r.wantPeek("q/$deadletterqueue", "c")
		c.settle(got[0], Complete)
		c.AddCredit(9)
		c.settle(got[1], Release)
		c.want()
		r.wantPeek("q")
		r.wantPeek("q/$deadletterqueue", "c", "b")
	})
}

func TestSubscriptionTimeToLive(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.topic("t", Topic{DefaultTTL: 20 * time.Second})
		r.subscription("t", "short", Subscription{DefaultTTL: 10 * time.Second})
		r.subscription("t", "long", Subscription{DefaultTTL: time.Hour, DeadLetteringOnExpiration: true})
		r.send("t", msg("a"))
		time.Sleep(10 * time.Second)
		r.wantPeek("t/subscriptions/short")
		r.wantPeek("t/subscriptions/long", "a")
		time.Sleep(10 * time.Second)
		r.wantPeek("t/subscriptions/long")
		r.wantPeek("t/subscriptions/long/$deadletterqueue", "a")
		if i, _ := r.Topic("t"); i.SizeBytes != 1 {
			t.Errorf("topic holds %d bytes", i.SizeBytes)
		}
	})
}

func TestSchedule(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{})
		c := r.receive("q", 100)
		schedule := func(s string, d time.Duration) Message {
			m := msg(s)
			m.ScheduledAt = r.Now().Add(d)
			m.TTL = 10 * time.Second
			return m
		}
		var numbers []int64
		done := make(chan error, 1)
		r.Schedule("q", []Message{schedule("b", 2*time.Second), schedule("a", time.Second), schedule("never", 3*time.Second), schedule("now", -time.Second)}, func(n []int64, err error) {
			numbers = n
			done <- err
		})
		if err := <-done; err != nil || len(numbers) != 4 || numbers[2] != 3 {
			t.Fatalf("scheduled %v: %v", numbers, err)
		}
		c.want("now")
		ds, _ := r.Peek("q", PeekOptions{From: 2, Count: 1})
		if d := ds[0]; d.State != Scheduled || d.SequenceNumber != 2 || !d.ScheduledAt.Equal(r.Now().Add(time.Second)) || !d.LockedUntil.IsZero() {
			t.Errorf("peeked %+v", d)
		}
		cancel := func(sequences ...int64) error {
			r.CancelScheduled("q", sequences, func(err error) { done <- err })
			return <-done
		}
		if err := cancel(3, 99); !errors.Is(err, MessageNotFound) {
			t.Errorf("cancelled an unknown message: %v", err)
		}
		if err := cancel(3, 3); err != nil {
			t.Error(err)
		}
		if i, _ := r.Queue("q"); i.Scheduled != 2 || i.Active != 1 {
			t.Errorf("counts %+v", i.Counts)
		}
		if r.fs != nil {
			r.crash()
			c = r.receive("q", 100)
			c.want("now")
		}
		time.Sleep(time.Second)
		if d := c.want("a")[0]; d.SequenceNumber != 5 || d.State != Active || !d.EnqueuedAt.Equal(r.Now()) || !d.ExpiresAt.Equal(r.Now().Add(10*time.Second)) {
			t.Errorf("delivered %+v", d)
		}
		if err := cancel(2); !errors.Is(err, MessageNotFound) {
			t.Errorf("cancelled too late: %v", err)
		}
		time.Sleep(time.Minute)
		c.want("b")
	})
}

func TestScheduledTopicMessageFansOutWhenDue(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.topic("t", Topic{RequiresDuplicateDetection: true})
		r.subscription("t", "early", Subscription{})
		m := of("x", "m")
		m.ScheduledAt = r.Now().Add(time.Minute)
		r.send("t", m)
		r.subscription("t", "late", Subscription{RequiresSession: true})
		if i, _ := r.Topic("t"); i.Scheduled != 1 {
			t.Errorf("counts %+v", i.Counts)
		}
		if r.fs != nil {
			r.crash()
		}
		r.send("t", m) // a duplicate
		r.wantPeek("t/subscriptions/early")
		time.Sleep(time.Minute)
		r.wantPeek("t/subscriptions/early", "m")
		r.accept("t/subscriptions/late", "x", 1).want("m")
		if i, _ := r.Topic("t"); i.Scheduled != 0 || i.SizeBytes != 1 {
			t.Errorf("topic %+v", i)
		}
	})
}

func TestDefer(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{MaxDeliveryCount: 3})
		r.send("q", msg("a"), msg("b"))
		c := r.receive("q", 1)
		a := c.one()
		if err := c.trySettle(a, Outcome{Kind: Defer, Properties: []Property{{"k", []byte{1}}}}); err != nil {
			t.Fatal(err)
		}
		if r.fs != nil {
			r.crash()
			c = r.receive("q", 0)
		}
		c.AddCredit(5)
		c.want("b")
		bySequence := func(mode Mode, sequences ...int64) (Delivery, error) {
			type answer struct {
				ds  []Delivery
				err error
			}
			done := make(chan answer, 1)
			r.ReceiveBySequence("q", SequenceOptions{Sequences: sequences, Mode: mode}, func(ds []Delivery, err error) { done <- answer{ds, err} })
			x := <-done
			if len(x.ds) != 1 {
				return Delivery{}, x.err
			}
			return x.ds[0], x.err
		}
		if _, err := bySequence(PeekLock, 1, 2); !errors.Is(err, MessageNotFound) {
			t.Errorf("received what is not deferred: %v", err)
		}
		d, err := bySequence(PeekLock, 1, 1)
		if err != nil || d.State != Deferred || d.DeliveryCount != 0 || len(d.Properties) != 1 || d.LockToken == (LockToken{}) {
			t.Fatalf("received %+v: %v", d, err)
		}
		if _, err := bySequence(PeekLock, 1); !errors.Is(err, MessageNotFound) {
			t.Errorf("received what is locked: %v", err)
		}
		if i, _ := r.Queue("q"); i.Deferred != 0 || i.Locked != 2 {
			t.Errorf("counts %+v", i.Counts)
		}
		c.settle(d, Abandon) // remains deferred
		c.want()
		d, err = bySequence(PeekLock, 1)
		if err != nil || d.DeliveryCount != 1 || d.State != Deferred {
			t.Errorf("received %+v: %v", d, err)
		}
		time.Sleep(time.Minute) // the lock expires, and that of b
		c.want("b")
		if d, err = bySequence(ReceiveAndDelete, 1); err != nil || d.DeliveryCount != 2 || d.LockToken != (LockToken{}) {
			t.Errorf("received %+v: %v", d, err)
		}
		r.wantPeek("q", "b")
	})
}

func TestDeferInSession(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		sessionQueue(r)
		r.send("q", of("x", "a"))
		c := r.accept("q", "x", 1)
		c.settle(c.one(), Defer)
		x, done := "x", make(chan error, 1)
		receive := func(session *string) ([]Delivery, error) {
			var got []Delivery
			r.ReceiveBySequence("q", SequenceOptions{Sequences: []int64{1}, Session: session}, func(ds []Delivery, err error) {
				got = ds
				done <- err
			})
			err := <-done
			return got, err
		}
		if _, err := receive(nil); !errors.Is(err, NotAllowed) {
			t.Errorf("without session: %v", err)
		}
		if got, err := receive(&x); err != nil || len(got) != 1 {
			t.Errorf("got %v: %v", got, err)
		}
		c.Close() // gives it back, still deferred
		if _, err := receive(&x); !errors.Is(err, SessionLockLost) {
			t.Errorf("session not held: %v", err)
		}
		c = r.accept("q", "x", 5)
		c.want()
		got, err := receive(&x)
		if err != nil {
			t.Fatal(err)
		}
		c.settle(got[0], Complete)
		r.wantPeek("q")
	})
}
