package rabbitmq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/application/relay"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/tests/testenv"
)

// ended is a closed channel.
type ended struct{}

func (ended) Publish(string, string, bool, bool, amqp.Publishing) error { return amqp.ErrClosed }
func (ended) IsClosed() bool                                            { return true }
func (ended) Close() error                                              { return amqp.ErrClosed }

// newSender returns a sender of two keys with one message each, and a closed channel.
func newSender(t *testing.T) (*sender, *channel) {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	client, err := NewClient(Config{URL: "amqp://localhost"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPublisher(client, "orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	groups := []relay.Group{{Key: "a", Messages: []relay.Message{{ID: "1", Key: "a"}}}, {Key: "b", Messages: []relay.Message{{ID: "2", Key: "b"}}}}
	ch := &channel{
		raw: ended{}, session: &session{client: client, socket: &socket{Conn: near}},
		confirms: make(chan amqp.Confirmation, 2), returns: make(chan amqp.Return, 2), ends: make(chan *amqp.Error, 1),
	}
	return &sender{publisher: p, groups: groups, results: make([]relay.KeyError, 2), returned: map[string]bool{}}, ch
}

// A burst must not block, because it holds back writes of other channels. The reason for the end of a
// channel is received after the burst.
func TestBurstDoesNotWaitForTheReasonOfAClosedChannel(t *testing.T) {
	t.Parallel()
	s, ch := newSender(t)
	if ready := s.fill(t.Context(), ch, []int{0, 1}); len(ready) != 2 || len(s.unconfirmed) != 0 || s.results[0].Err != nil {
		t.Errorf("ready %v, unconfirmed %v, results %v: a result was set before the reason was received", ready, s.unconfirmed, s.results)
	}
	ch.ends <- &amqp.Error{Code: amqp.NotFound}
	close(ch.confirms)
	if s.run(t.Context(), ch, []int{0, 1}) {
		t.Error("the closed channel would be used again")
	}
	for _, f := range s.results {
		if relay.ReasonOf(f.Err) != "exchange_not_found" {
			t.Errorf("got %v", f.Err)
		}
	}
}

// Confirmations and returns that arrived before the end of the channel count.
func TestConfirmationsBeforeTheEndOfTheChannelCount(t *testing.T) {
	t.Parallel()
	s, ch := newSender(t)
	s.unconfirmed = []parcel{{id: "1", events: 1, shares: []share{{0, 1}}}, {id: "2", events: 1, shares: []share{{1, 1}}}}
	ch.returns <- amqp.Return{MessageId: "2"}
	ch.confirms <- amqp.Confirmation{DeliveryTag: 1, Ack: true}
	ch.confirms <- amqp.Confirmation{DeliveryTag: 2, Ack: true}
	close(ch.returns)
	close(ch.confirms)
	ch.ends <- &amqp.Error{Code: amqp.ConnectionForced}
	s.run(t.Context(), ch, nil)
	if s.results[0].Err != nil || s.results[0].Sent != 1 {
		t.Errorf("the confirmed message: %+v", s.results[0])
	}
	if s.results[1].Sent != 0 || relay.ReasonOf(s.results[1].Err) != "no_queue" {
		t.Errorf("the returned message: %+v", s.results[1])
	}
}

// The end of a channel fails only the groups that still have messages.
func TestEndOfAChannelFailsNoGroupThatIsConfirmed(t *testing.T) {
	t.Parallel()
	s, ch := newSender(t)
	s.groups[0].Messages = append(s.groups[0].Messages, relay.Message{ID: "3", Key: "a"})
	s.unconfirmed = []parcel{{id: "1", events: 1, shares: []share{{0, 1}}}, {id: "2", events: 1, shares: []share{{1, 1}}}}
	ch.confirms <- amqp.Confirmation{DeliveryTag: 1, Ack: true}
	ch.confirms <- amqp.Confirmation{DeliveryTag: 2, Ack: true}
	close(ch.confirms)
	ch.ends <- &amqp.Error{Code: amqp.ConnectionForced}
	s.run(t.Context(), ch, nil)
	if r := s.results[0]; r.Sent != 1 || r.Err == nil {
		t.Errorf("the group with another message: %+v", r)
	}
	if r := s.results[1]; r.Sent != 1 || r.Err != nil {
		t.Errorf("the confirmed group: %+v", r)
	}
}

// unconfirmed accepts messages and confirms none. Its broker has not replied to the close yet.
type unconfirmed struct{ ended }

func (unconfirmed) Publish(string, string, bool, bool, amqp.Publishing) error { return nil }
func (unconfirmed) IsClosed() bool                                            { return false }

// A late confirmation would count for the first message of the next call.
func TestChannelWithoutAConfirmationIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	s, ch := newSender(t)
	ch.raw = unconfirmed{}
	p := s.publisher
	p.opts.SendTimeout = 10 * time.Millisecond
	for range p.opts.Channels {
		<-p.channels
	}
	p.channels <- ch
	failed, ok := errors.AsType[*relay.PublishError](p.Publish(t.Context(), s.groups))
	if !ok || relay.ReasonOf(failed.Keys[0].Err) != "send_timeout" {
		t.Errorf("got %v", failed)
	}
	if left := <-p.channels; left != nil {
		t.Error("the next call would use the channel")
	}
	ch.session.client.running.Wait()
}

// The broker closes a channel without saying which message it refused.
func TestChannelErrorRefusesOnlyASingleMessage(t *testing.T) {
	t.Parallel()
	end := &amqp.Error{Code: amqp.PreconditionFailed}
	for unconfirmed, want := range []relay.Class{relay.Outage, relay.Refused, relay.Outage} {
		if got := relay.ClassOf(channelError(end, unconfirmed)); got != want {
			t.Errorf("%d unconfirmed: %v, want %v", unconfirmed, got, want)
		}
	}
}

// script is a channel of a broker in memory. It keeps the messages, and decides with answer about each when the
// sender waits.
type script struct {
	t        *testing.T
	sent     []amqp.Delivery
	confirms chan amqp.Confirmation
	returns  chan amqp.Return
	answer   func(m amqp.Delivery) (accepted, returned bool)
}

func (*script) IsClosed() bool { return false }
func (*script) Close() error   { return nil }

func (b *script) Publish(_, key string, _, _ bool, m amqp.Publishing) error {
	d := amqp.Delivery{RoutingKey: key, MessageId: m.MessageId, Type: m.Type, AppId: m.AppId, ContentType: m.ContentType, Headers: m.Headers, Timestamp: m.Timestamp, Body: bytes.Clone(m.Body)}
	b.sent = append(b.sent, d)
	accepted, returned := b.answer(d)
	if returned {
		b.returns <- amqp.Return{MessageId: m.MessageId}
	}
	b.confirms <- amqp.Confirmation{Ack: accepted}
	return nil
}

// packed returns a publisher that packs, and a function that publishes on a channel in memory.
func packed(t *testing.T, o PublisherOptions, answer func(m amqp.Delivery) (accepted, returned bool)) (b *script, publish func(groups []relay.Group) []relay.KeyError) {
	t.Helper()
	_, ch := newSender(t)
	o.PackKeys, o.Channels = true, 1
	p, err := NewPublisher(ch.session.client, "orders", &o)
	if err != nil {
		t.Fatal(err)
	}
	if answer == nil {
		answer = func(amqp.Delivery) (bool, bool) { return true, false }
	}
	b = &script{t: t, confirms: make(chan amqp.Confirmation, p.opts.Window), returns: make(chan amqp.Return, p.opts.Window), answer: answer}
	ch.raw, ch.confirms, ch.returns = b, b.confirms, b.returns
	<-p.channels
	p.channels <- ch
	return b, func(groups []relay.Group) []relay.KeyError {
		failed, _ := errors.AsType[*relay.PublishError](p.Publish(t.Context(), groups))
		if failed == nil {
			return nil
		}
		return failed.Keys
	}
}

// inSlot returns groups of one slot.
func inSlot(slot, keys, each int) (all []relay.Group) {
	for n := 0; len(all) < keys; n++ {
		g := relay.Group{Key: fmt.Sprintf("key-%d", n)}
		if Slot(g.Key) != slot {
			continue
		}
		for i := range each {
			g.Messages = append(g.Messages, relay.Message{
				ID: fmt.Sprintf("%s/%d", g.Key, i+1), Key: g.Key, Action: "Happened", Sequence: int64(i + 1), AggregateVersion: 7, CreatedAt: "2026-01-02T03:04:05.120Z",
				Traceparent: "00-1", Body: []byte(`{"a": 1}`),
			})
		}
		all = append(all, g)
	}
	return all
}

// events unpacks all messages. Each key must have its events in order.
func (b *script) events() (all [][]amqp.Delivery) {
	b.t.Helper()
	for i := range b.sent {
		events, err := Unpack(&b.sent[i])
		if err != nil {
			b.t.Fatal(err)
		}
		all = append(all, events)
	}
	return all
}

// An event that was packed is the same as one that was sent alone.
func TestPackedEventIsTheSameAsOneSentAlone(t *testing.T) {
	t.Parallel()
	strange := []relay.Message{
		{ID: "1", Action: "Happened", Body: []byte("{}")},
		{ID: "\u00e9\"\n<&>", Action: "\\", Key: "k\u2028", Traceparent: "\x00", Body: []byte(`"<&> "`), Sequence: -1},
		{ID: "2", Action: "Happened", Key: "\xff", Body: []byte("1")},            // not UTF-8
		{ID: "3", Action: "Happened", Body: []byte(" {} ")},                      // white space
		{ID: "4", Action: "Happened", Body: []byte("{}\n")},                      // white space
		{ID: "5", Action: "Happened", Body: []byte("\xfe{")},                     // not JSON
		{ID: "6", Action: "Happened", Body: nil},                                 // empty
		{ID: "7", Action: "Happened", CreatedAt: "yesterday", Body: []byte("1")}, // not RFC 3339
		{ID: strings.Repeat("x", 255), Action: "Happened", Body: []byte("1")},    // no room for a prefix
		{ID: "8", Body: []byte("1")},                                             // no type
		{Action: "Happened", Body: []byte("1")},                                  // no id
		{ID: "9", Action: strings.Repeat("y", 255), Body: []byte("1"), CreatedAt: "2026-01-02T03:04:05+02:00"},
	}
	for _, m := range append(strange, inSlot(9, 1, 1)[0].Messages...) {
		other := relay.Message{ID: "other", Action: "Happened", Body: []byte("2"), Key: m.Key}
		for _, order := range [][]relay.Message{{m, other}, {other, m}} {
			b, publish := packed(t, PublisherOptions{}, nil)
			if failed := publish([]relay.Group{{Key: m.Key, Messages: order}}); failed != nil {
				t.Fatalf("%+v: %v", m, failed)
			}
			var got []amqp.Delivery
			for _, events := range b.events() {
				got = append(got, events...)
			}
			if len(got) != 2 {
				t.Fatalf("%d events of %+v", len(got), m)
			}
			for i := range order {
				want := publishing(&order[i], "/orders")
				g := got[i]
				if g.MessageId != want.MessageId || g.Type != want.Type || g.AppId != want.AppId || g.ContentType != want.ContentType || !g.Timestamp.Equal(want.Timestamp) || !bytes.Equal(g.Body, want.Body) || !maps.Equal(g.Headers, want.Headers) {
					t.Errorf("got %+v\nwant %+v", g, want)
				}
			}
		}
	}
}

// A longer id cannot be encoded, and the client closes the connection of all keys then.
func TestPackedMessageHasAnIDOfTheProtocol(t *testing.T) {
	t.Parallel()
	for length := textLimit - len(packedID) - 1; length <= textLimit; length++ {
		b, publish := packed(t, PublisherOptions{}, nil)
		all := inSlot(3, 2, 2)
		all[0].Messages[0].ID = strings.Repeat("x", length)
		failed := publish(all)
		sent := 0
		for n, events := range b.events() {
			sent += len(events)
			if id := b.sent[n].MessageId; len(id) > textLimit {
				t.Errorf("an event id of %d bytes: the message id has %d", length, len(id))
			}
		}
		if failed != nil || sent != 4 {
			t.Errorf("an event id of %d bytes: %d of 4 events sent, %v", length, sent, failed)
		}
	}
}

// The broker answers at random. Each key has events in one unconfirmed message, its events are sent in order and
// none twice, and a failure has no effect on keys of other messages.
func TestPackedMessagesKeepTheRulesOfKeys(t *testing.T) {
	t.Parallel()
	rnd := testenv.Random(t)
	for range testenv.Sample(t, 50, 1000) {
		limit := 1000 + rnd.IntN(maxPackedBytes)
		luck := rnd.Uint64()
		answer := func(m amqp.Delivery) (accepted, returned bool) { // by the id, because keys that are alone are sent in any order
			h := fnv.New64a()
			_, _ = fmt.Fprint(h, luck, m.MessageId)
			one := rand.New(rand.NewPCG(h.Sum64(), luck))
			return one.IntN(20) > 0, one.IntN(20) == 0
		}
		b, publish := packed(t, PublisherOptions{MaxMessageBytes: limit, Window: 1 + rnd.IntN(20)}, answer)
		var all []relay.Group
		want := map[string]relay.Group{}
		tooLarge := map[string]bool{}
		for slot := range 1 + rnd.IntN(4) {
			for _, g := range inSlot(slot, 1+rnd.IntN(20), 1+rnd.IntN(150)) {
				for i := range g.Messages {
					g.Messages[i].Body = []byte(`"` + strings.Repeat("x", rnd.IntN(limit/(1+rnd.IntN(50))-1)) + `"`)
				}
				if rnd.IntN(10) == 0 {
					m := &g.Messages[rnd.IntN(len(g.Messages))]
					m.Body, tooLarge[m.ID] = make([]byte, limit+1), true
				}
				g.Alone = rnd.IntN(10) == 0
				all, want[g.Key] = append(all, g), g
			}
		}
		rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		failed := publish(all)
		sent, lost := map[string]int{}, map[string]bool{}
		for n, events := range b.events() {
			if m := b.sent[n]; len(events) > 1 && (len(events) > maxPackedEvents || len(m.Body) > min(limit, maxPackedBytes)) {
				t.Errorf("%d events and %d bytes, the limit is %d", len(events), len(m.Body), limit)
			}
			accepted, returned := answer(b.sent[n])
			fails := !accepted || returned
			for _, e := range events {
				key := e.Headers["partitionKey"].(string)
				if lost[key] && !fails || slotNames[Slot(key)] != b.sent[n].RoutingKey || want[key].Alone && len(events) > 1 {
					t.Errorf("%s: event %s in a message of %d events of slot %s, after a failure %t", key, e.MessageId, len(events), b.sent[n].RoutingKey, lost[key])
				}
				if i := sent[key]; want[key].Messages[i].ID != e.MessageId {
					t.Errorf("%s: %s is event %d", key, e.MessageId, i)
				}
				if sent[key]++; fails {
					lost[key] = true
				}
			}
		}
		for _, f := range failed {
			g := all[f.Group]
			switch next := g.Messages[f.Sent].ID; {
			case lost[g.Key]:
				if reason := relay.ReasonOf(f.Err); reason != "nacked" && reason != "no_queue" {
					t.Errorf("%s: %v", g.Key, f.Err)
				}
			case !tooLarge[next] || relay.ReasonOf(f.Err) != "too_large" || sent[g.Key] != f.Sent:
				t.Errorf("%s failed at %s after %d confirmed of %d sent: %v", g.Key, next, f.Sent, sent[g.Key], f.Err)
			}
			delete(want, g.Key)
		}
		for key, g := range want {
			if lost[key] || sent[key] != len(g.Messages) {
				t.Errorf("%s: %d of %d events sent, refused %t, and no failure", key, sent[key], len(g.Messages), lost[key])
			}
		}
		if t.Failed() {
			return // one example is enough
		}
	}
}

// The broker does not say which event of a packed message it refused, so none may be parked for it.
func TestRefusedPackedMessageRefusesNoEvent(t *testing.T) {
	t.Parallel()
	s, ch := newSender(t)
	s.groups = inSlot(3, 2, 1)
	s.packer.slots, s.packer.limit = []int{3, 3}, maxPackedBytes
	ch.raw = unconfirmed{}
	ready := s.fill(t.Context(), ch, []int{0, 1})
	if len(ready) != 0 || len(s.unconfirmed) != 1 || s.unconfirmed[0].events != 2 {
		t.Fatalf("unconfirmed %+v, ready %v; want one message", s.unconfirmed, ready)
	}
	ch.ends <- &amqp.Error{Code: amqp.PreconditionFailed}
	close(ch.confirms)
	s.run(t.Context(), ch, nil)
	for _, r := range s.results {
		if r.Sent != 0 || relay.ClassOf(r.Err) != relay.Outage {
			t.Errorf("got %+v, want an outage", r)
		}
	}
}

// acknowledgements counts those of a message.
type acknowledgements struct{ n atomic.Int32 }

func (a *acknowledgements) Ack(uint64, bool) error      { a.n.Add(1); return nil }
func (*acknowledgements) Nack(uint64, bool, bool) error { return nil }
func (*acknowledgements) Reject(uint64, bool) error     { return nil }

// Otherwise a consumer that ends would lose the events that are not handled.
func TestPackedMessageIsAcknowledgedAfterItsLastEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := NewClient(Config{URL: "amqp://localhost"})
		if err != nil {
			t.Fatal(err)
		}
		var held atomic.Bool
		held.Store(true)
		var handled atomic.Int32
		all := inSlot(3, 3, 2)
		c, err := NewConsumer(client, Group{Name: "billing", Queues: 1}, func(_ context.Context, e *consumer.Event) error {
			if held.Load() && e.ID == all[1].Messages[0].ID {
				return errors.New("not now")
			}
			handled.Add(1)
			return nil
		}, &ConsumerOptions{Options: consumer.Options{Attempts: -1, Logger: slog.New(slog.DiscardHandler)}})
		if err != nil {
			t.Fatal(err)
		}
		b, publish := packed(t, PublisherOptions{}, nil)
		if failed := publish(all); failed != nil || len(b.sent) != 1 {
			t.Fatalf("%d messages, %v", len(b.sent), failed)
		}
		acks := &acknowledgements{}
		b.sent[0].Acknowledger = acks
		ctx, stop := context.WithCancel(t.Context())
		r := &queueReceiver{Consumer: c, taken: &taken{limit: 6, room: make(chan struct{}, 1)}}
		receive := func(ctx, working context.Context) error {
			r.owned = working
			r.take(ctx, &b.sent[0])
			<-ctx.Done()
			return nil
		}
		stopped := make(chan struct{})
		go func() {
			c.dispatcher.Run(ctx, []handling.Receiver{receive}, func(context.Context) {})
			close(stopped)
		}()
		time.Sleep(time.Hour)
		if n := handled.Load(); n != 4 || acks.n.Load() != 0 || len(r.taken.room) != 1 {
			t.Errorf("%d events handled, %d acknowledgements; want the 4 of other keys and none", n, acks.n.Load())
		}
		held.Store(false)
		time.Sleep(time.Hour)
		if n := handled.Load(); n != 6 || acks.n.Load() != 1 || r.taken.events.Load() != 0 {
			t.Errorf("%d events handled, %d acknowledgements, %d unsettled; want all and one", n, acks.n.Load(), r.taken.events.Load())
		}
		stop()
		<-stopped
	})
}

// wire records the sizes of writes.
type wire struct {
	net.Conn
	pieces []int
	err    error
	closed bool
}

func (w *wire) Write(b []byte) (int, error) {
	w.pieces = append(w.pieces, len(b))
	return len(b), w.err
}

func (w *wire) Close() error {
	w.closed = true
	return nil
}

func TestBurstIsWrittenAtItsEnd(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer func() { _, _ = near.Close(), far.Close() }()
	w := &wire{Conn: near}
	s := &socket{Conn: w}
	write := func(n int, want ...int) {
		t.Helper()
		w.pieces = nil
		if _, err := s.Write(make([]byte, n)); err != nil {
			t.Error(err)
		}
		if len(w.pieces) != len(want) || len(want) > 0 && w.pieces[0] != want[0] {
			t.Errorf("wrote %v, want %v", w.pieces, want)
		}
	}
	write(10, 10)
	end := s.burst()
	write(10)
	write(20)
	write(maxBuffered, maxBuffered+30) // the buffer is full
	write(5)
	second := s.burst()
	write(6)
	end()
	if len(w.pieces) != 1 || w.pieces[0] != 11 {
		t.Errorf("the end of a burst wrote %v, want the buffered writes of all bursts", w.pieces)
	}
	write(7)
	second()
	write(8, 8)

	w.err = errors.New("cut")
	third := s.burst()
	write(9)
	third()
	if !w.closed {
		t.Error("the connection stays open after the buffer could not be written")
	}
}

// RabbitMQ 4 limits the deliveries of a queue without a limit. Earlier versions refuse the argument.
func TestDeliveryLimitOfTheBrokerIsDisabledWhereItExists(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{"3.8.9": false, "3.13.7": false, "4.0.0": true, "4.2.1-rc.1": true, "10.0.0": true, "": false, "unknown": false} {
		if limitsDeliveries(version) != want {
			t.Errorf("version %q: %v, want %v", version, !want, want)
		}
	}
}

// unanswered is a channel whose broker replies to nothing. It counts the attempts to close it.
type unanswered struct {
	ended
	net.Conn
	closed *atomic.Int32
}

func (u unanswered) Close() error {
	u.closed.Add(1)
	_, err := u.Read(make([]byte, 1)) // until the connection is aborted
	return err
}

func TestAlarmDoesNotHoldTheEndOfAReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, ch := newSender(t)
		var closed atomic.Int32
		ch.raw = unanswered{Conn: ch.session.socket, closed: &closed}
		ch.session.alarm.set("memory")
		ch.discard() // of a publisher, which waits
		time.Sleep(time.Hour)
		if closed.Load() != 0 {
			t.Error("the publisher asked a broker that does not reply, and so lost the connection")
		}
		time.AfterFunc(time.Hour, func() { ch.session.alarm.set("") })
		began := time.Now()
		ch.session.closeChannel(ch)
		if took := time.Since(began); took != requestTimeout || !ch.session.socket.aborted.Load() {
			t.Errorf("a receiver was held for %s", took)
		}
		ch.session.client.running.Wait()
		if n := closed.Load(); n != 2 {
			t.Errorf("%d of 2 channels were closed", n)
		}
	})
}

// SendTimeout bounds the wait for each confirmation, not that for all messages of a call.
func TestSlowConfirmationsAreNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ch := newSender(t)
		ch.raw = unconfirmed{}
		const messages = 20
		s.groups = []relay.Group{{Key: "a", Messages: make([]relay.Message, messages)}}
		ch.confirms = make(chan amqp.Confirmation, messages)
		var broker sync.WaitGroup
		defer broker.Wait()
		broker.Go(func() {
			for range messages {
				time.Sleep(s.publisher.opts.SendTimeout / 2)
				ch.confirms <- amqp.Confirmation{Ack: true}
			}
		})
		if !s.run(t.Context(), ch, []int{0}) || s.results[0].Sent != messages || s.results[0].Err != nil {
			t.Errorf("%+v, want %d messages sent", s.results[0], messages)
		}
	})
}

// A broker that reads nothing does not hold a write for ever.
func TestWriteEndsIfTheBrokerDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer func() { _ = near.Close() }()
		defer time.AfterFunc(time.Hour, func() { _ = far.Close() }).Stop()
		began := time.Now()
		_, err := (&socket{Conn: near}).Write([]byte("message"))
		if took := time.Since(began); err == nil || took != writeTimeout {
			t.Errorf("%v after %v, want an error after %v", err, took, writeTimeout)
		}
	})
}

// The count of a letter is that of its own deliveries.
func TestDeadLetterHasNoDeliveriesOfItsEvent(t *testing.T) {
	t.Parallel()
	m := &amqp.Delivery{Headers: amqp.Table{headerDeliveryCount: int64(15), "action": "OrderPaid"}}
	if copied := copyOf(m).Headers; len(copied) != 1 || copied["action"] != "OrderPaid" || len(m.Headers) != 2 {
		t.Errorf("headers %v of %v", copied, m.Headers)
	}
}

// Probes and metrics of dependencies have the name, metrics of messages the system and the exchange.
func TestRelayBrokerNamesItsExchange(t *testing.T) {
	t.Parallel()
	b := NewRelayBroker(nil, "events", nil)
	if err := b.Check(); err != nil {
		t.Error(err)
	}
	b.Open = nil // functions cannot be compared
	if want := (relayport.Broker{Name: "rabbitMQ", System: "rabbitmq", Destination: "events"}); !reflect.DeepEqual(b, want) {
		t.Errorf("%+v, want %+v", b, want)
	}
}
