package broker

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

// swapping runs a test with all waiting messages swapped out.
func swapping(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	mode(t, rig{fs: vfs.NewCrashableMem(), cache: 1}, test)
}

// noneInMemory checks that all waiting messages are swapped out.
func (r *rig) noneInMemory() {
	r.t.Helper()
	synctest.Wait()
	if n := r.inMemory.Load(); n != 0 {
		r.t.Errorf("%d bytes of messages are in memory, want 0\n%s", n, r.Dump())
	}
}

func (r *rig) size(path string) int64 {
	r.t.Helper()
	in, err := r.inletAt(path)
	if err != nil {
		r.t.Fatal(err)
	}
	return in.size.Load()
}

func (r *rig) look(path string, o PeekOptions) []string {
	r.t.Helper()
	ds, err := r.Peek(path, o)
	if err != nil {
		r.t.Fatal(err)
	}
	return payloads(ds)
}

func TestSwappedAfterARestart(t *testing.T) {
	swapping(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{LockDuration: time.Minute})
		for i := range 300 {
			r.send("q", Message{Payload: fmt.Append(nil, i)})
		}
		r.noneInMemory()
		r.crash()
		r.noneInMemory()
		c := r.receive("q", 300)
		if got := c.take(); len(got) != 300 || string(got[299].Payload) != "299" {
			t.Fatalf("%d messages", len(got))
		}
		if got := r.size("q"); got != 10+90*2+200*3 {
			t.Errorf("the queue takes %d bytes", got)
		}
	})
}

// Swapped out messages come after older ones in memory, and before those that arrive when
// there is room again.
func TestSwappedMessagesKeepOrder(t *testing.T) {
	mode(t, rig{fs: vfs.NewCrashableMem(), cache: 3 * (messageOverhead + 1)}, func(t *testing.T, r *rig) {
		r.queue("q", Queue{})
		for _, s := range []string{"1", "2", "3", "4", "5"} {
			r.send("q", msg(s))
		}
		c := r.receive("q", 2)
		for _, d := range c.want("1", "2") {
			c.settle(d, Complete)
		}
		r.send("q", msg("6"))
		if n := r.inMemory.Load(); n != 2*(messageOverhead+1) {
			t.Errorf("%d bytes are in memory, want those of 3 and 6\n%s", n, r.Dump())
		}
		c.AddCredit(4)
		c.want("3", "4", "5", "6")
	})
}

func TestPeekSessionSwapped(t *testing.T) {
	swapping(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{RequiresSession: true})
		for i := range 200 {
			r.send("q", Message{Payload: fmt.Append(nil, i), SessionID: fmt.Sprint(i % 7), HasSession: true})
		}
		r.send("q", Message{Payload: []byte("later"), SessionID: "3", HasSession: true, ScheduledAt: r.Now().Add(time.Hour)})
		r.noneInMemory()
		session := "3"
		if got, want := r.look("q", PeekOptions{From: 150, Count: 5, Session: &session}), []string{"150", "157", "164", "171", "178"}; !slices.Equal(got, want) {
			t.Errorf("peeked %q, want %q", got, want)
		}
		if got, want := r.look("q", PeekOptions{From: 190, Count: 10, Session: &session}), []string{"192", "199", "later"}; !slices.Equal(got, want) {
			t.Errorf("peeked %q, want %q", got, want)
		}
		r.noneInMemory()
	})
}

// A message is delivered, deferred, swapped out again, found by its number and by its
// state.
func TestDeferredSwapped(t *testing.T) {
	swapping(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{LockDuration: time.Minute})
		r.send("q", Message{Payload: []byte("a")}, Message{Payload: []byte("b")})
		c := r.receive("q", 1)
		for range 3 {
			if err := c.trySettle(c.one(), Outcome{Kind: Abandon, Properties: []Property{{Name: "n", Value: []byte{1}}}}); err != nil {
				t.Fatal(err)
			}
			c.AddCredit(1)
		}
		c.settle(c.one(), Defer)
		c.Close()
		r.noneInMemory()
		done := make(chan error, 1)
		r.ReceiveBySequence("q", SequenceOptions{Sequences: []int64{1}}, func(ds []Delivery, err error) {
			if err == nil {
				if d := ds[0]; string(d.Payload) != "a" || d.DeliveryCount != 3 || d.State != Deferred || len(d.Properties) != 1 {
					t.Errorf("got %+v", d)
				}
			}
			done <- err
		})
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestForwardSwapped(t *testing.T) {
	swapping(t, func(t *testing.T, r *rig) {
		r.queue("target", Queue{})
		r.queue("q", Queue{})
		const n = 2*maxForward + 500
		for i := 0; i < n; i += 100 {
			var batch []Message
			for j := range 100 {
				batch = append(batch, Message{Payload: fmt.Append(nil, i+j)})
			}
			r.send("q", batch...)
		}
		r.noneInMemory()
		q, err := r.Queue("q")
		if err == nil {
			q.ForwardTo = "target"
			_, err = r.UpdateQueue(t.Context(), q.Queue)
		}
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		got := r.look("target", PeekOptions{Count: n + 1})
		if len(got) != n || r.size("q") != 0 {
			t.Fatalf("%d messages were forwarded, %d bytes are left", len(got), r.size("q"))
		}
		for i := range got {
			if got[i] != fmt.Sprint(i) {
				t.Fatalf("message %d is %s", i, got[i])
			}
		}
	})
}

func TestExpireManySwapped(t *testing.T) {
	swapping(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{DeadLetteringOnExpiration: true})
		const n = maxWake + 1004
		for i := 0; i < n; i += 100 {
			r.send("q", slices.Repeat([]Message{{Payload: []byte("x"), TTL: time.Minute}}, 100)...)
		}
		r.send("q", Message{Payload: []byte("y"), TTL: time.Hour}, Message{Payload: []byte("z"), ScheduledAt: r.Now().Add(2 * time.Minute)})
		r.noneInMemory()
		r.Advance(time.Minute)
		r.noneInMemory()
		if got := r.look("q", PeekOptions{Count: 10}); !slices.Equal(got, []string{"y", "z"}) {
			t.Errorf("in the queue is %q", got)
		}
		if got := r.look("q/$DeadLetterQueue", PeekOptions{Count: n + 100}); len(got) != n {
			t.Errorf("%d dead letters, want %d", len(got), n)
		}
	})
}

// A payload shared by several subscriptions is deleted with the last of them.
func TestDeleteSubscriptionSwapped(t *testing.T) {
	swapping(t, func(t *testing.T, r *rig) {
		r.topic("t", Topic{})
		r.subscription("t", "a", Subscription{})
		r.subscription("t", "b", Subscription{Rules: []Rule{{Name: "r", Filter: sqlfilter.Filter{Kind: sqlfilter.KindSQL, Expression: "color = 'red'"}}}})
		r.send("t", Message{Payload: []byte("color=red")}, Message{Payload: []byte("color=blue")})
		r.noneInMemory()
		if err := r.DeleteSubscription(t.Context(), "t", "a"); err != nil {
			t.Fatal(err)
		}
		if got := r.size("t"); got != int64(len("color=red")) {
			t.Errorf("the topic takes %d bytes", got)
		}
		r.crash()
		if got := r.look("t/Subscriptions/b", PeekOptions{Count: 5}); !slices.Equal(got, []string{"color=red"}) {
			t.Errorf("left is %q", got)
		}
		if err := r.DeleteSubscription(t.Context(), "t", "b"); err != nil {
			t.Fatal(err)
		}
		if got := r.size("t"); got != 0 {
			t.Errorf("the topic takes %d bytes", got)
		}
	})
}

// A record that cannot be read stops the broker, because skipping the message would lose it.
func TestSwappedRecordLost(t *testing.T) {
	swapping(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{})
		r.send("q", Message{Payload: []byte("a")}, Message{Payload: []byte("b")})
		h, err := r.holderAt("q")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.store.db.Delete(sequenceKey(nil, kindMessage, h.id, 1), nil); err != nil {
			t.Fatal(err)
		}
		if got := r.receive("q", 2).take(); len(got) != 0 {
			t.Errorf("received %q", payloads(got))
		}
		if err := r.trySend("q", msg("c")); !errors.Is(err, InternalError) {
			t.Errorf("send: %v", err)
		}
	})
}

// Drained entities and dropped ids release their memory.
func TestMemoryIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t}
		r.open(nil)
		defer func() { _ = r.Close() }()
		r.queue("q", Queue{RequiresSession: true, RequiresDuplicateDetection: true, DuplicateDetectionWindow: time.Minute})
		for i := range 20000 {
			id := fmt.Sprint(i)
			r.send("q", Message{Payload: []byte("x"), MessageID: id, SessionID: id, HasSession: true})
			if i == 18000 {
				time.Sleep(30 * time.Second)
			}
		}
		time.Sleep(40 * time.Second)
		r.send("q", Message{Payload: []byte("x"), MessageID: "x", SessionID: "x", HasSession: true})
		in, err := r.inletAt("q")
		if err != nil {
			t.Fatal(err)
		}
		if n := len(in.history.seen); n != 2000 || in.history.most != n {
			t.Errorf("%d ids are remembered, in a map made for %d, want 1999 and one more", n, in.history.most)
		}
		for range 20001 {
			c, err := r.tryAccept("q", nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			c.AddCredit(1)
			c.settle(c.taken()[0], Complete)
			c.Close()
		}
		h := in.rest
		if chunks := h.index.tables[0].chunks; chunks != nil || h.mostSessions != 0 {
			t.Errorf("the index has %d chunks; the map of sessions was made for %d", len(chunks), h.mostSessions)
		}
	})
}
