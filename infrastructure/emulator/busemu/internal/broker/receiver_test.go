package broker

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
)

func TestCredit(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{})
		for i := range 10 {
			r.send("q", msg(strconv.Itoa(i)))
		}
		c := r.receive("q", 0)
		c.want()
		c.SetCredit(0, 2)
		c.want("0", "1")
		c.SetCredit(0, 3) // as of before those two
		c.want("2")
		c.SetCredit(1, 1) // outdated: no credit is left
		c.want()
		c.SetCredit(3, 1)
		c.want("3")
		c.SetCredit(4, 100)
		c.want("4", "5", "6", "7", "8", "9")
		var at uint32
		c.Drain(func(n uint32) { at = n })
		if at != 104 {
			t.Errorf("drained at %d", at)
		}
		r.send("q", msg("x"))
		c.want()
		c.SetCredit(104, 1)
		c.want("x")
	})
}

func TestCreditWraps(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{})
		r.send("q", msg("a"), msg("b"), msg("c"))
		c := r.receive("q", 0)
		c.delivered = 1<<32 - 2
		c.SetCredit(1<<32-2, 3)
		c.want("a", "b", "c")
		if c.delivered != 1 {
			t.Errorf("delivery count %d", c.delivered)
		}
	})
}

func TestReceiveAndDelete(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{})
		r.send("q", msg("a"), msg("b"), msg("c"), msg("d"))
		c := &client{r: r}
		var err error
		if c.Receiver, err = r.OpenReceiver("q", c.options(ReceiveAndDelete)); err != nil {
			t.Fatal(err)
		}
		c.AddCredit(2)
		var at uint32
		c.AddCredit(1)
		c.Drain(func(n uint32) {
			at = n
			if got := payloads(c.taken()); !slices.Equal(got, []string{"a", "b", "c"}) {
				t.Errorf("drained after %q", got)
			}
		})
		synctest.Wait()
		if at != 3 {
			t.Errorf("drained at %d", at)
		}
		c.AddCredit(1)
		d := c.one()
		if d.LockToken != (LockToken{}) || !d.LockedUntil.IsZero() {
			t.Errorf("delivery %+v", d)
		}
		r.wantPeek("q")
		if i, _ := r.Queue("q"); i.SizeBytes != 0 {
			t.Errorf("%d bytes left", i.SizeBytes)
		}
	})
}

// A receiver that closes while its messages are being removed returns them, and no other
// receiver overtakes.
func TestReceiveAndDeleteLosesNothing(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		sessionQueue(r)
		var want, got []string
		for i := range 200 {
			s := strconv.Itoa(1000 + i)
			want = append(want, s)
			r.send("q", of("x", s))
		}
		id := "x"
		options := ReceiverOptions{Mode: ReceiveAndDelete, Deliver: func(ds []Delivery) { got = append(got, payloads(ds)...) }}
		for round := 0; len(got) < len(want) && round < 1000; round++ {
			var c *Receiver
			opened := make(chan error, 1)
			r.AcceptSession("q", AcceptOptions{Session: &id}, options, func(x *Receiver, err error) {
				c = x
				opened <- err
			})
			if err := <-opened; errors.Is(err, SessionCannotBeLocked) {
				synctest.Wait() // the last batch is being restored
				continue
			}
			c.AddCredit(7)
			if round%3 == 0 {
				synctest.Wait()
			}
			c.Close()
			if round%20 == 10 && r.fs != nil {
				synctest.Wait()
				r.crash()
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
		if i, _ := r.Queue("q"); i.SizeBytes != 0 || i.Active != 0 || i.Sessions != 0 {
			t.Errorf("left: %+v", i.Counts)
		}
		if r.fs != nil {
			r.crash()
			r.wantPeek("q")
		}
	})
}

// Deleting a subscription while its messages are delivered releases each shared payload once.
func TestDeletedWhileReceiving(t *testing.T) {
	durable(t, func(t *testing.T, r *rig) {
		r.topic("t", Topic{})
		r.subscription("t", "stays", Subscription{})
		for i := range 50 {
			r.subscription("t", "goes", Subscription{})
			r.send("t", msg(strconv.Itoa(i)))
			c := &client{r: r}
			var err error
			if c.Receiver, err = r.OpenReceiver("t/subscriptions/goes", c.options(ReceiveAndDelete)); err != nil {
				t.Fatal(err)
			}
			c.AddCredit(1)
			if err := r.DeleteSubscription(r.t.Context(), "t", "goes"); err != nil {
				t.Fatal(err)
			}
		}
		r.await()
		if n := r.records(kindPayload); n != 50 {
			t.Errorf("%d of 50 payloads stored", n)
		}
		r.crash()
		if n := len(r.peek("t/subscriptions/stays")); n != 50 {
			t.Errorf("%d of 50 messages left", n)
		}
	})
}

// A store that fails stops the broker: nothing is acknowledged or delivered that is not
// stored, and nothing is stored after the failure, even before it is reported.
func TestFailedStore(t *testing.T) {
	durable(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{})
		r.send("q", msg("a"))
		c := r.receive("q", 1)
		d := c.one()
		done := make(chan error, 2)
		var later callbacks
		told := make(chan struct{})
		r.store.submit(&waiting{done: func(error) { <-told }}, &later)
		synctest.Wait()
		r.store.submit(&waiting{records: func(w *writer) { w.keep(errors.New("disk full")) }, done: func(err error) { done <- err }}, &later)
		synctest.Wait()
		r.Send("q", []Message{msg("b")}, func(err error) { done <- err })
		later.run()
		synctest.Wait()
		close(told)
		for range 2 {
			if err := <-done; !errors.Is(err, InternalError) {
				t.Errorf("answer %v", err)
			}
		}
		if err := r.trySend("q", msg("c")); !errors.Is(err, InternalError) {
			t.Errorf("later send: %v", err)
		}
		if err := c.trySettle(d, Outcome{Kind: Complete}); !errors.Is(err, InternalError) {
			t.Errorf("settlement: %v", err)
		}
		if _, err := r.CreateQueue(r.t.Context(), Queue{Name: "p"}); !errors.Is(err, InternalError) {
			t.Errorf("create: %v", err)
		}
		c.AddCredit(5)
		c.want()
		r.crash()
		r.wantPeek("q", "a")
	})
}

func TestCompetingReceiversShare(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{})
		var clients []*client
		for range 4 {
			clients = append(clients, r.receive("q", 100))
		}
		for i := range 80 {
			r.send("q", msg(strconv.Itoa(i)))
		}
		for _, c := range clients {
			if got := c.take(); len(got) != 20 {
				t.Errorf("one of four receivers got %d of 80", len(got))
			}
		}
		clients[0].Close()
		r.send("q", msg("a"), msg("b"), msg("c"))
		for i, c := range clients {
			if got := c.take(); len(got) != min(i, 1) {
				t.Errorf("receiver %d got %q; the first is closed", i, payloads(got))
			}
		}
	})
}

func TestDetach(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		ctx := r.t.Context()
		r.topic("t", Topic{})
		r.subscription("t", "s", Subscription{RequiresSession: true})
		var senderEnd error
		s, err := r.OpenSender("t", func(err error) { senderEnd = err })
		if err != nil {
			t.Fatal(err)
		}
		r.send("t", of("x", "1"))
		c := r.accept("t/subscriptions/s", "x", 1)
		c.want("1")
		waiting := make(chan error, 1)
		r.AcceptSession("t/subscriptions/s", AcceptOptions{}, ReceiverOptions{}, func(_ *Receiver, err error) { waiting <- err })
		if _, err := r.UpdateSubscription(ctx, "t", Subscription{Name: "s", RequiresSession: true, MaxDeliveryCount: 5}); err != nil {
			t.Fatal(err)
		}
		if c.lost() != nil {
			t.Errorf("lost by the update: %v", c.lost())
		}
		if err := r.DetachAll("t/subscriptions/s", detached("s")); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(c.lost(), DetachForced) || !errors.Is(<-waiting, DetachForced) || senderEnd != nil {
			t.Errorf("after the update: %v, %v", c.lost(), senderEnd)
		}
		c = r.accept("t/subscriptions/s", "x", 1)
		if d := c.one(); d.DeliveryCount != 0 {
			t.Errorf("delivery %+v", d)
		}
		if err := r.DeleteTopic(ctx, "t"); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(c.lost(), DetachForced) || !errors.Is(senderEnd, DetachForced) {
			t.Errorf("after the deletion: %v, %v", c.lost(), senderEnd)
		}
		done := make(chan error, 1)
		s.Send([]Message{of("x", "2")}, func(err error) { done <- err })
		if err := <-done; !errors.Is(err, NotFound) {
			t.Errorf("send to what is gone: %v", err)
		}
		if r.fs != nil {
			if n := r.records(kindMessage) + r.records(kindPayload) + r.records(kindEntity) + r.records(kindSequence); n != 0 {
				t.Errorf("%d records left", n)
			}
		}
	})
}

func TestDisabled(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		ctx := r.t.Context()
		r.queue("q", Queue{})
		c := r.receive("q", 1)
		for _, test := range []struct {
			status        Status
			send, receive bool
		}{
			{StatusDisabled, false, false}, {StatusSendDisabled, false, true}, {StatusReceiveDisabled, true, false}, {StatusActive, true, true},
		} {
			if err := r.SetStatus(ctx, "q", test.status); err != nil {
				t.Fatal(err)
			}
			if err := r.trySend("q", msg("a")); (err == nil) != test.send || err != nil && !errors.Is(err, EntityDisabled) {
				t.Errorf("%s: send: %v", test.status, err)
			}
			x, err := r.OpenReceiver("q", ReceiverOptions{})
			if (err == nil) != test.receive || err != nil && !errors.Is(err, EntityDisabled) {
				t.Errorf("%s: receive: %v", test.status, err)
			}
			if x != nil {
				x.Close()
			}
		}
		if !errors.Is(c.lost(), DetachForced) {
			t.Errorf("receiver: %v", c.lost())
		}
		if err := r.SetStatus(ctx, "q", "Odd"); !errors.Is(err, ArgumentError) {
			t.Error(err)
		}
	})
}

func TestCloseEndsEverything(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		sessionQueue(r)
		c := r.accept("q", "x", 1)
		waiting := make(chan error, 1)
		r.AcceptSession("q", AcceptOptions{}, ReceiverOptions{}, func(_ *Receiver, err error) { waiting <- err })
		s, err := r.OpenSender("q", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		s.Send([]Message{of("x", "1")}, func(err error) { done <- err })
		if err := <-done; !errors.Is(err, OperationCancelled) {
			t.Errorf("send by an old sender: %v", err)
		}
		s.Close()
		if !errors.Is(c.lost(), OperationCancelled) || !errors.Is(<-waiting, OperationCancelled) {
			t.Errorf("receiver: %v", c.lost())
		}
		if err := r.trySend("q", of("x", "1")); !errors.Is(err, OperationCancelled) {
			t.Errorf("send: %v", err)
		}
		if _, err := r.CreateQueue(r.t.Context(), Queue{Name: "z"}); !errors.Is(err, OperationCancelled) {
			t.Errorf("create: %v", err)
		}
		if _, err := r.tryAccept("q", nil, 0); !errors.Is(err, OperationCancelled) {
			t.Errorf("accept: %v", err)
		}
		c.Close()
	})
}

func TestSettlementKeepsProperties(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{})
		r.send("q", msg("a"))
		c := r.receive("q", 3)
		property := func(name string, v byte) []Property { return []Property{{name, []byte{v}}} }
		for i, o := range []Outcome{
			{Kind: Abandon, Properties: property("k", 1)},
			{Kind: Abandon, Properties: append(property("k", 2), property("l", 3)...)},
			{Kind: DeadLetter, Reason: "why", Description: "because", Properties: property("m", 4)},
		} {
			if err := c.trySettle(c.one(), o); err != nil {
				t.Fatal(i, err)
			}
		}
		if r.fs != nil {
			r.crash()
		}
		c = r.receive("q/$deadletterqueue", 1)
		d := c.one()
		var props []string
		for _, p := range d.Properties {
			props = append(props, p.Name+strconv.Itoa(int(p.Value[0])))
		}
		if got := strings.Join(props, " "); got != "k2 l3 m4" || d.DeadLetterReason != "why" || d.DeadLetterDescription != "because" || d.DeliveryCount != 2 {
			t.Errorf("%s in %+v", got, d)
		}
		if err := c.trySettle(d, Outcome{Kind: DeadLetter}); !errors.Is(err, NotAllowed) {
			t.Errorf("dead-lettered twice: %v", err)
		}
		if err := c.trySettle(d, Outcome{Kind: 77}); !errors.Is(err, NotImplemented) {
			t.Errorf("unknown outcome: %v", err)
		}
		c.AddCredit(1)
		c.settle(d, Abandon)
		if d = c.one(); d.DeliveryCount != 2 {
			t.Errorf("a dead-letter queue counts deliveries: %+v", d)
		}
	})
}
