package broker

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func sessionQueue(r *rig) { r.queue("q", Queue{RequiresSession: true}) }

func TestSessionKeepsOrderUnderAbandon(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		sessionQueue(r)
		r.send("q", of("x", "1"), of("x", "2"), of("x", "3"), of("x", "4"))
		c := r.accept("q", "x", 2)
		got := c.want("1", "2")
		c.settle(got[1], Abandon)
		c.settle(got[0], Abandon)
		c.want()
		c.AddCredit(3)
		got = c.want("1", "2", "3")
		if got[0].DeliveryCount != 1 || got[1].DeliveryCount != 1 || got[2].DeliveryCount != 0 {
			t.Errorf("delivery counts of %+v", got)
		}
		for _, d := range []Delivery{got[2], got[0], got[1]} {
			c.settle(d, Release)
		}
		c.AddCredit(10)
		if got = c.want("1", "2", "3", "4"); got[0].DeliveryCount != 1 {
			t.Errorf("a release counts as delivery: %+v", got[0])
		}
	})
}

func TestSessionCloseGivesBackInOrder(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		sessionQueue(r)
		for i := range 50 {
			r.send("q", of("x", fmt.Sprintf("%02d", i)))
		}
		c := r.accept("q", "x", 40)
		c.take()
		c.Close()
		c.Close()
		again := r.accept("q", "x", 100)
		got := again.take()
		if len(got) != 50 || !slices.IsSorted(payloads(got)) || got[0].DeliveryCount != 0 {
			t.Errorf("got %q", payloads(got))
		}
		if err := c.trySettle(got[0], Outcome{Kind: Complete}); err != nil {
			t.Errorf("the token is the holder's, not the receiver's: %v", err)
		}
	})
}

func TestSessionLockExpires(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{RequiresSession: true, LockDuration: 10 * time.Second, MaxDeliveryCount: 2})
		r.send("q", of("x", "1"), of("x", "2"), of("x", "3"))
		c := r.accept("q", "x", 2)
		got := c.want("1", "2")
		if !got[1].LockedUntil.Equal(r.Now().Add(10 * time.Second)) {
			t.Errorf("locked until %v", got[1].LockedUntil)
		}
		time.Sleep(9 * time.Second)
		if until, err := r.RenewSessionLock("q", "x", nil); err != nil || !until.Equal(c.SessionLockedUntil()) || !until.Equal(r.Now().Add(10*time.Second)) {
			t.Fatalf("renewed until %v: %v", until, err)
		}
		time.Sleep(9 * time.Second)
		if c.lost() != nil {
			t.Fatalf("lost early: %v", c.lost())
		}
		time.Sleep(time.Second)
		if !errors.Is(c.lost(), SessionLockLost) {
			t.Fatalf("not lost: %v", c.lost())
		}
		if err := c.trySettle(got[0], Outcome{Kind: Complete}); !errors.Is(err, MessageLockLost) {
			t.Errorf("settled after the loss: %v", err)
		}
		if _, err := r.RenewSessionLock("q", "x", nil); !errors.Is(err, SessionLockLost) {
			t.Errorf("renewed after the loss: %v", err)
		}
		c = r.accept("q", "x", 5)
		got = c.want("1", "2", "3")
		if got[0].DeliveryCount != 1 || got[2].DeliveryCount != 0 {
			t.Errorf("counts of %+v", got)
		}
		if err := r.ExpireSession("q", "x"); err != nil {
			t.Fatal(err)
		}
		r.wantPeek("q", "3") // 1 and 2 were delivered twice
		r.wantPeek("q/$deadletterqueue", "1", "2")
	})
}

// TestSessionOperationsNeedTheHolder: a receiver that has lost a session cannot use it, even if
// another one holds it now.
func TestSessionOperationsNeedTheHolder(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		sessionQueue(r)
		r.send("q", of("x", "1"))
		lost := r.accept("q", "x", 1)
		if err := lost.trySettle(lost.one(), Outcome{Kind: Defer}); err != nil {
			t.Fatal(err)
		}
		if err := r.ExpireSession("q", "x"); err != nil {
			t.Fatal(err)
		}
		id, holder := "x", r.accept("q", "x", 1)
		for by, want := range map[*Receiver]error{lost.Receiver: SessionLockLost, holder.Receiver: nil} {
			done := make(chan error, 2)
			_, renewed := r.RenewSessionLock("q", id, by)
			_, read := r.SessionState("q", id, by)
			r.SetSessionState("q", id, by, []byte("state"), func(err error) { done <- err })
			r.ReceiveBySequence("q", SequenceOptions{Sequences: []int64{1}, Session: &id, By: by}, func(_ []Delivery, err error) { done <- err })
			for what, err := range map[string]error{"renew": renewed, "read": read, "set": <-done, "receive": <-done} {
				if !errors.Is(err, want) {
					t.Errorf("%s by the holder %t: %v, want %v", what, by == holder.Receiver, err, want)
				}
			}
		}
	})
}

// Each session keeps its own end of lock, even if an earlier session is renewed past it.
func TestRenewingOneSessionKeepsNoOther(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{RequiresSession: true, LockDuration: 10 * time.Second})
		r.send("q", of("x", "1"), of("y", "2"))
		older := r.accept("q", "x", 1)
		time.Sleep(time.Second)
		other := r.accept("q", "y", 1)
		time.Sleep(8 * time.Second)
		if _, err := r.RenewSessionLock("q", "x", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2*time.Second - time.Millisecond)
		if older.lost() != nil || other.lost() != nil {
			t.Fatalf("lost early: %v, %v", older.lost(), other.lost())
		}
		time.Sleep(time.Millisecond)
		if older.lost() != nil || !errors.Is(other.lost(), SessionLockLost) {
			t.Errorf("at the end of the other's lock: %v, %v, want the other lost alone", older.lost(), other.lost())
		}
		time.Sleep(8 * time.Second)
		if !errors.Is(older.lost(), SessionLockLost) {
			t.Errorf("the renewed session outlives its lock: %v", older.lost())
		}
	})
}

func TestAcceptNamed(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		sessionQueue(r)
		for _, id := range []string{"never-used", ""} {
			c := r.accept("q", id, 1)
			if _, err := r.tryAccept("q", &id, 0); !errors.Is(err, SessionCannotBeLocked) {
				t.Errorf("second accept of %q: %v", id, err)
			}
			r.send("q", of(id, "m"+id))
			c.settle(c.want("m" + id)[0], Complete)
			c.Close()
		}
		if ids, err := r.ListSessions("q", ListOptions{}); err != nil || len(ids) != 0 {
			t.Errorf("sessions left: %q %v", ids, err)
		}
	})
}

func TestAcceptNext(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		sessionQueue(r)
		start := r.Now()
		if _, err := r.tryAccept("q", nil, 3*time.Second); !errors.Is(err, Timeout) {
			t.Fatalf("accept: %v", err)
		}
		if waited := r.Now().Sub(start); waited != 3*time.Second {
			t.Errorf("waited %v", waited)
		}
		if _, err := r.tryAccept("q", nil, 0); !errors.Is(err, Timeout) || r.Now().Sub(start) != 68*time.Second {
			t.Errorf("default time-out: %v after %v", err, r.Now().Sub(start))
		}
		r.send("q", of("b", "1"), of("a", "2"), of("b", "3"))
		first, err := r.tryAccept("q", nil, time.Second)
		if id, ok := first.Session(); err != nil || id != "b" || !ok {
			t.Fatalf("accepted %q: %v", id, err)
		}
		second, err := r.tryAccept("q", nil, time.Second)
		if id, _ := second.Session(); err != nil || id != "a" {
			t.Fatalf("accepted %q: %v", id, err)
		}
		go func() {
			time.Sleep(time.Second)
			first.Close()
		}()
		start = r.Now()
		third, err := r.tryAccept("q", nil, time.Minute)
		if id, _ := third.Session(); err != nil || id != "b" || r.Now().Sub(start) != time.Second {
			t.Fatalf("accepted %q after %v: %v", id, r.Now().Sub(start), err)
		}
		third.AddCredit(9)
		for _, d := range third.want("1", "3") {
			third.settle(d, Defer)
		}
		third.Close()
		if _, err := r.tryAccept("q", nil, time.Second); !errors.Is(err, Timeout) {
			t.Errorf("accepted a session that has deferred messages only: %v", err)
		}
	})
}

func TestAcceptIsCancelled(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		sessionQueue(r)
		var answers []error
		var got *Receiver
		opened := func(x *Receiver, err error) { got, answers = x, append(answers, err) }
		cancel := r.AcceptSession("q", AcceptOptions{}, ReceiverOptions{}, opened)
		cancel()
		cancel()
		r.send("q", of("x", "1"))
		if len(answers) != 1 || !errors.Is(answers[0], OperationCancelled) {
			t.Fatalf("answers %v", answers)
		}
		cancel = r.AcceptSession("q", AcceptOptions{}, ReceiverOptions{}, opened)
		cancel() // too late
		if len(answers) != 2 || answers[1] != nil || got == nil {
			t.Fatalf("answers %v", answers)
		}
		got.Close()
		c, err := r.tryAccept("q", nil, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	})
}

func TestTwoHundredAcceptNextCallers(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{RequiresSession: true, MaxDeliveryCount: 1000})
		const callers, sessions, messages = 200, 500, 8
		var seen sync.Map // session -> next message
		var held sync.Map // session -> struct{}
		var received atomic.Int64
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for received.Load() < sessions*messages {
					c, err := r.tryAccept("q", nil, 20*time.Second)
					if errors.Is(err, Timeout) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					id, _ := c.Session()
					if _, twice := held.LoadOrStore(id, true); twice {
						t.Errorf("session %s has two holders", id)
					}
					c.AddCredit(messages)
					for i, d := range c.taken() {
						if i == 3 { // a consumer that fails now and then
							break
						}
						next, _ := seen.LoadOrStore(id, 0)
						if want := fmt.Sprintf("%s/%d", id, next); string(d.Payload) != want {
							t.Errorf("got %s, want %s", d.Payload, want)
						}
						seen.Store(id, next.(int)+1)
						received.Add(1)
						c.settle(d, Complete)
					}
					held.Delete(id)
					c.Close()
				}
			})
		}
		for i := range messages {
			for s := range sessions {
				r.send("q", of(fmt.Sprint(s), fmt.Sprintf("%d/%d", s, i)))
			}
			time.Sleep(time.Second)
		}
		all.Wait()
		if received.Load() != sessions*messages {
			t.Errorf("received %d of %d\n%s", received.Load(), sessions*messages, r.Dump())
		}
		if n, _ := r.Counters("q"); n.LocksLost != 0 || n.Completed != sessions*messages {
			t.Errorf("counters %+v", n)
		}
	})
}

func TestSessionState(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		sessionQueue(r)
		if _, err := r.SessionState("q", "x", nil); !errors.Is(err, SessionLockLost) {
			t.Errorf("state of a session nobody holds: %v", err)
		}
		c := r.accept("q", "x", 0)
		set := func(state []byte) {
			t.Helper()
			done := make(chan error, 1)
			r.SetSessionState("q", "x", nil, state, func(err error) { done <- err })
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		want := func(want []byte) {
			t.Helper()
			if got, err := r.SessionState("q", "x", nil); err != nil || !slices.Equal(got, want) || (got == nil) != (want == nil) {
				t.Errorf("state %q, want %q: %v", got, want, err)
			}
		}
		want(nil)
		set([]byte{})
		want([]byte{})
		set([]byte("page 3"))
		before := r.Now()
		c.Close()
		time.Sleep(time.Second)
		if r.fs != nil {
			r.crash()
		}
		r.accept("q", "y", 0)
		r.send("q", of("z", "1"))
		for _, test := range []struct {
			options ListOptions
			want    []string
		}{
			{ListOptions{}, []string{"x", "z"}},
			{ListOptions{Skip: 1, Top: 5}, []string{"z"}},
			{ListOptions{Skip: 9}, nil},
			{ListOptions{Top: 1}, []string{"x"}},
			{ListOptions{UpdatedAfter: before.Add(-time.Second)}, []string{"x"}},
			{ListOptions{UpdatedAfter: before}, nil},
		} {
			if ids, err := r.ListSessions("q", test.options); err != nil || !slices.Equal(ids, test.want) {
				t.Errorf("%+v lists %q, want %q: %v", test.options, ids, test.want, err)
			}
		}
		r.accept("q", "x", 0)
		want([]byte("page 3"))
		set(nil)
		want(nil)
		done := make(chan error, 1)
		r.SetSessionState("q", "x", nil, make([]byte, StandardMaxMessageSize+1), func(err error) { done <- err })
		if err := <-done; !errors.Is(err, MessageSizeExceeded) {
			t.Errorf("large state: %v", err)
		}
	})
}

func TestSessionRules(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		sessionQueue(r)
		r.queue("plain", Queue{})
		if err := r.trySend("q", msg("1")); !errors.Is(err, NotAllowed) {
			t.Errorf("message without session: %v", err)
		}
		if _, err := r.OpenReceiver("q", ReceiverOptions{}); !errors.Is(err, NotAllowed) {
			t.Errorf("receiver without session: %v", err)
		}
		id := "x"
		if _, err := r.tryAccept("plain", &id, 0); !errors.Is(err, NotAllowed) {
			t.Errorf("session of an entity without: %v", err)
		}
		if _, err := r.ListSessions("plain", ListOptions{}); !errors.Is(err, NotAllowed) {
			t.Errorf("list: %v", err)
		}
		if _, err := r.RenewSessionLock("plain", "x", nil); !errors.Is(err, NotAllowed) {
			t.Errorf("renew: %v", err)
		}
		r.send("plain", of("x", "1")) // a session id does no harm
		c := r.receive("plain", 1)
		if d := c.one(); d.SessionID != "x" || !d.HasSession {
			t.Errorf("delivery %+v", d)
		}
		synctest.Wait()
	})
}
