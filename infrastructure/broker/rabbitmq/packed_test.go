package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/rabbitmq"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/tests/servers"
	"feedbox/tests/testkit"
)

const batchType = "application/cloudevents-batch+json"

// line receives the first line of a log about a message that was unacknowledged for too long. The failed handler has
// a line, too, before or after it.
type line chan string

// Write implements io.Writer.
func (l line) Write(text []byte) (int, error) {
	if strings.Contains(string(text), "unacknowledged_too_long") {
		select {
		case l <- string(text):
		default:
		}
	}
	return len(text), nil
}

// inSlot returns groups whose keys share a slot, so that their events can share a message. They have other keys than
// groups.
func inSlot(keys, each int) (all []relay.Group) {
	for n := 1000; len(all) < keys; n++ {
		key := fmt.Sprintf("key-%d", n)
		if rabbitmq.Slot(key) != 7 {
			continue
		}
		g := groups(1, each)[0]
		g.Key = key
		for i := range g.Messages {
			g.Messages[i].Key, g.Messages[i].ID = key, fmt.Sprintf("%d-%d", n, i)
		}
		all = append(all, g)
	}
	return versions(all)
}

func testPacked(t *testing.T, server *servers.RabbitMQ) {
	raw, err := amqp.Dial(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	packed := func(t *testing.T, group rabbitmq.Group) *consumers {
		c := newConsumers(t, server, group)
		c.packs = func() bool { return true }
		return c
	}

	t.Run("events of a slot share messages, and others are sent as before", func(t *testing.T) {
		c := packed(t, rabbitmq.Group{Name: "batches", Queues: 3})
		c.publish(t, versions(groups(200, 5)))
		alone := newConsumers(t, server, rabbitmq.Group{Name: "singles", Queues: 3})
		alone.publish(t, versions(groups(200, 5)))
		messages, next := 0, map[string]int64{}
		for q := range 3 {
			want := map[string]amqp.Delivery{}
			for _, m := range drain(t, raw, fmt.Sprintf("singles.%d", q)) {
				want[m.MessageId] = m
			}
			for _, m := range drain(t, raw, fmt.Sprintf("batches.%d", q)) {
				messages++
				events, err := rabbitmq.Unpack(&m)
				if err != nil || (len(events) > 1) != (m.ContentType == batchType) || len(events) > 1 && len(m.Headers) != 1 {
					t.Fatalf("%d events, %v: %+v", len(events), err, m)
				}
				for _, e := range events {
					key, w := e.Headers[consumer.PropertyKey].(string), want[e.MessageId]
					if got := e.Headers[consumer.PropertySequence].(int64); got != next[key]+1 {
						t.Errorf("%s: sequence %d after %d", key, got, next[key])
					}
					next[key]++
					e.AppId = strings.Replace(e.AppId, "batches", "singles", 1)
					if fmt.Sprint(e.Headers, e.Type, e.AppId, e.ContentType, e.Timestamp, string(e.Body)) != fmt.Sprint(w.Headers, w.Type, w.AppId, w.ContentType, w.Timestamp, string(w.Body)) {
						t.Errorf("got %+v\nwant %+v", e, w)
					}
				}
			}
		}
		if len(next) != 200 || messages < 140 || messages > 200 { // 200 keys in 256 slots
			t.Errorf("%d messages of %d keys", messages, len(next))
		}
	})

	// A message is stored or refused as a whole, so its keys have one result.
	t.Run("refused message fails its keys and no others", func(t *testing.T) {
		c := packed(t, rabbitmq.Group{Name: "brimful", Queues: 2, MaxBytes: 3000})
		p, err := rabbitmq.NewPublisher(c.client, "brimful", &rabbitmq.PublisherOptions{PackKeys: true})
		if err != nil {
			t.Fatal(err)
		}
		send := func(all []relay.Group) error { return p.Publish(t.Context(), all) }
		all := inSlot(5, 1000)
		part := func(n int) []relay.Group {
			next := make([]relay.Group, len(all))
			for i, g := range all {
				next[i] = relay.Group{Key: g.Key, Messages: g.Messages[n : n+1]}
			}
			return next
		}
		sent := 0
		var failure error
		for ; failure == nil && sent < 1000; sent++ {
			failure = send(part(sent))
		}
		wantAll(t, failure, 5, relay.Outage, "nacked")
		other := groups(300, 1)
		for i := range other {
			if rabbitmq.Slot(other[i].Key) >= 128 { // of the other queue
				if failure = send(append(part(sent-1), other[i])); failure != nil {
					wantAll(t, failure, 5, relay.Outage, "nacked")
				}
				break
			}
		}
		if got := len(drain(t, raw, "brimful.0")); got != sent-1 {
			t.Errorf("%d messages accepted, %d in the queue", sent-1, got)
		}
		if err := send(part(sent - 1)); err != nil {
			t.Error("after the queue was read:", err)
		}
		if err := rabbitmq.Declare(t.Context(), c.client, "unrouted"); err != nil {
			t.Fatal(err)
		}
		if p, err = rabbitmq.NewPublisher(c.client, "unrouted", &rabbitmq.PublisherOptions{PackKeys: true}); err != nil {
			t.Fatal(err)
		}
		wantAll(t, send(part(0)), 5, relay.Blocked, "no_queue")
	})

	// The broker's limit is below that of the publisher. The relay sends keys that failed alone.
	t.Run("message that the broker refuses is sent event by event", func(t *testing.T) {
		c := packed(t, rabbitmq.Group{Name: "strict", Queues: 1})
		limit := func(bytes int) {
			t.Helper()
			if _, err := server.Control(t.Context(), "eval", fmt.Sprintf("application:set_env(rabbit, max_message_size, %d).", bytes)); err != nil {
				t.Fatal(err)
			}
		}
		limit(1000)
		defer limit(128 << 20)
		p, err := rabbitmq.NewPublisher(c.client, "strict", &rabbitmq.PublisherOptions{PackKeys: true})
		if err != nil {
			t.Fatal(err)
		}
		all := inSlot(4, 3)
		all[1].Messages[1].Body = []byte(`"` + strings.Repeat("x", 1000) + `"`)
		wantAll(t, p.Publish(t.Context(), all), 4, relay.Outage, "connection_lost")
		for i := range all {
			all[i].Alone = true
		}
		failed, ok := errors.AsType[*relay.PublishError](p.Publish(t.Context(), all))
		if !ok || len(failed.Keys) != 1 || failed.Keys[0].Group != 1 || failed.Keys[0].Sent != 1 || relay.ClassOf(failed.Keys[0].Err) != relay.Refused {
			t.Errorf("got %v, want the second event of one key refused", failed)
		}
		if got := len(drain(t, raw, "strict.0")); got != 10 {
			t.Errorf("%d messages, want the 10 before or beside the refused one", got)
		}
	})

	// The process ends with half of a message handled. The next one gets all events of the message again.
	t.Run("crash with half of a message handled", func(t *testing.T) {
		c := packed(t, rabbitmq.Group{Name: "halves", Queues: 1})
		all := inSlot(10, 2)
		var ledger servers.Ledger
		stop := c.start(t, func(ctx context.Context, e *consumer.Event) error {
			if e.Key >= all[5].Key {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return ledger.Handle(ctx, e)
		}, rabbitmq.ConsumerOptions{Options: consumer.Options{Inbox: &ledger, Concurrency: 20, DrainTimeout: time.Millisecond}})
		c.publish(t, all)
		handled := 0
		for _, g := range all {
			if g.Key < all[5].Key {
				handled += len(g.Messages)
			}
		}
		testkit.Eventually(t, time.Minute, "half of the message", func() bool { return ledger.Count() == handled })
		c.network.cut()
		stop()
		stop = c.start(t, ledger.Handle, rabbitmq.ConsumerOptions{Options: ledger.Options()})
		ledger.Judge(t, all)
		testkit.Eventually(t, time.Minute, "those that were handled before are dropped", func() bool {
			_, repeats := ledger.Messages()
			return repeats >= handled
		})
		wantEmpty(t, c, stop)
	})

	t.Run("dead letter of one event is as if it had come alone", func(t *testing.T) {
		c := packed(t, rabbitmq.Group{Name: "bitter", Queues: 1})
		all := inSlot(6, 3)
		bad := all[2].Messages[1].ID
		var ledger servers.Ledger
		var accept sync.Map
		stop := c.start(t, func(ctx context.Context, e *consumer.Event) error {
			if _, ok := accept.Load(e.ID); !ok && e.ID == bad {
				return consumer.DeadLetter("unknown", errors.New("no such thing"))
			}
			return ledger.Handle(ctx, e)
		}, rabbitmq.ConsumerOptions{Options: consumer.Options{Inbox: &ledger, GapDeliveries: -1}})
		c.publish(t, all)
		testkit.Eventually(t, time.Minute, "the other events", func() bool { return ledger.Count() == 17 })
		letters := rabbitmq.NewDeadLetters(c.client)
		var found []relayport.DeadLetter
		testkit.Eventually(t, time.Minute, "the letter", func() (ok bool) {
			found, _, err = letters.Read(t.Context(), "bitter:1", 10)
			return err == nil && len(found) == 1
		})
		if l := found[0]; l.Event != bad || l.Key != all[2].Key || l.Action != "Happened" || l.Sequence != 2 || l.Reason != "unknown" || string(l.Body) != `{"a":1}` {
			t.Errorf("letter %+v", l)
		}
		stop() // its inbox has the mark of the later event of the key
		accept.Store(bad, true)
		handled := make(chan *consumer.Event, 1)
		stop = c.start(t, func(_ context.Context, e *consumer.Event) error { handled <- e; return nil }, rabbitmq.ConsumerOptions{Options: consumer.Options{Inbox: &ledger}})
		resubmit(t, letters, "bitter:1", found[0].ID, relayport.Resubmission{ID: "again"})
		select {
		case e := <-handled:
			if e.ID != bad || e.Resubmission != "again" {
				t.Errorf("handled %+v", e)
			}
		case <-time.After(time.Minute):
			t.Fatal("the letter was not handled again")
		}
		wantEmpty(t, c, stop)
	})

	t.Run("unreadable message is kept until it is corrected", func(t *testing.T) {
		c := packed(t, rabbitmq.Group{Name: "garbled", Queues: 2})
		all := inSlot(3, 2)
		c.publish(t, all)
		sent := drain(t, raw, "garbled.0")
		ch, err := raw.Channel()
		if err != nil {
			t.Fatal(err)
		}
		if len(sent) != 1 {
			t.Fatalf("%d messages", len(sent))
		}
		body := string(sent[0].Body)
		for _, kind := range []string{sent[0].Type, "feedbox.wakeUp"} { // an action may have any name
			if err := ch.PublishWithContext(t.Context(), "", "garbled.0", true, false, amqp.Publishing{
				MessageId: kind, Type: kind, ContentType: sent[0].ContentType, DeliveryMode: amqp.Persistent, Headers: sent[0].Headers, Body: []byte(body[:len(body)/2]),
			}); err != nil {
				t.Fatal(err)
			}
		}
		var ledger servers.Ledger
		var mu sync.Mutex
		var handled []string
		o := rabbitmq.ConsumerOptions{Options: ledger.Options()}
		o.Policies = map[string]consumer.Policy{"": {Refused: consumer.Drop}}
		stop := c.start(t, func(_ context.Context, e *consumer.Event) error {
			mu.Lock()
			defer mu.Unlock()
			handled = append(handled, e.ID)
			return nil
		}, o)
		letters := rabbitmq.NewDeadLetters(c.client)
		var found []relayport.DeadLetter
		testkit.Eventually(t, time.Minute, "both letters", func() (ok bool) {
			found, _, err = letters.Read(t.Context(), "garbled:2", 10)
			return err == nil && len(found) == 2
		})
		for _, l := range found {
			if l.Reason != consumer.ReasonUndecodable || !strings.Contains(l.Description, "feedbox deadletters edit") || string(l.Body) != body[:len(body)/2] {
				t.Errorf("letter %+v", l)
			}
			resubmit(t, letters, "garbled:2", l.ID, relayport.Resubmission{ID: "again " + l.ID, Body: []byte(body)})
		}
		testkit.Eventually(t, time.Minute, "all events of both messages", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(handled) == 12
		})
		wantEmpty(t, c, stop)
	})

	t.Run("handlers that are too slow for the broker are logged with a remedy", func(t *testing.T) {
		c := packed(t, rabbitmq.Group{Name: "slow", Queues: 1})
		timeout := func(milliseconds, tick int) {
			t.Helper()
			if _, err := server.Control(t.Context(), "eval", fmt.Sprintf("application:set_env(rabbit, consumer_timeout, %d), application:set_env(rabbit, channel_tick_interval, %d).", milliseconds, tick)); err != nil {
				t.Fatal(err)
			}
		}
		timeout(100, 100)
		defer timeout(1_800_000, 60_000)
		c.publish(t, inSlot(2, 1))
		found := make(line, 1)
		k, err := rabbitmq.NewConsumer(c.client, c.group, func(ctx context.Context, _ *consumer.Event) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}, &rabbitmq.ConsumerOptions{Options: consumer.Options{Logger: slog.New(slog.NewTextHandler(found, nil))}})
		stop := servers.Consume(t, k, err)
		select {
		case text := <-found:
			if !strings.Contains(text, "timed out") || !strings.Contains(text, "lower Prefetch") {
				t.Error(text)
			}
		case <-time.After(time.Minute):
			t.Error("no line within a minute")
		}
		stop()
	})

	// A message that is taken up may have more events than Prefetch has left.
	t.Run("prefetch counts events", func(t *testing.T) {
		c := packed(t, rabbitmq.Group{Name: "ahead", Queues: 1})
		all := inSlot(50, 1)
		for n := range 5 {
			c.publish(t, all[10*n:10*n+10])
		}
		var ledger servers.Ledger
		var begun atomic.Int64
		open := make(chan struct{})
		o := rabbitmq.ConsumerOptions{Options: ledger.Options(), Prefetch: 12}
		o.Concurrency = 100
		stop := c.start(t, func(ctx context.Context, e *consumer.Event) error {
			begun.Add(1)
			select {
			case <-open:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			return ledger.Handle(ctx, e)
		}, o)
		testkit.Eventually(t, time.Minute, "two messages", func() bool { return begun.Load() >= 20 })
		time.Sleep(200 * time.Millisecond) // a slow machine can only hide the mistake
		if n := begun.Load(); n != 20 {
			t.Errorf("%d events taken up, want those of the two messages that begin within 12 events", n)
		}
		close(open)
		ledger.Judge(t, all)
		wantEmpty(t, c, stop)
	})
}

// resubmit sends a letter again, and removes it.
func resubmit(t *testing.T, letters *rabbitmq.DeadLetters, group, id string, r relayport.Resubmission) {
	t.Helper()
	claim, err := letters.Claim(t.Context(), group, []string{id})
	if err != nil {
		t.Fatal(err)
	}
	defer claim.Release(t.Context())
	if err := errors.Join(claim.Resubmit(t.Context(), id, r), claim.Remove(t.Context(), id)); err != nil {
		t.Fatal(err)
	}
}

// wantEmpty stops a consumer and checks that it has acknowledged all messages: the broker would return others.
func wantEmpty(t *testing.T, c *consumers, stop func()) {
	t.Helper()
	stop()
	queues, err := rabbitmq.Inspect(t.Context(), c.client, c.group)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range queues {
		if q.Messages > 0 {
			t.Errorf("queue %s has %d messages", q.Name, q.Messages)
		}
	}
}
