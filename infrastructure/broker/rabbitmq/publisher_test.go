package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/rabbitmq"
	"feedbox/infrastructure/consumer"
	"feedbox/tests/servers"
	"feedbox/tests/testenv"
	"feedbox/tests/testkit"
)

func groups(keys, each int) []relay.Group {
	all := make([]relay.Group, keys)
	for k := range all {
		all[k].Key = fmt.Sprintf("key-%d", k)
		for n := range each {
			all[k].Messages = append(all[k].Messages, relay.Message{
				ID: fmt.Sprintf("%d-%d", k, n), Key: all[k].Key, Action: "Happened", Body: []byte(`{"a":1}`), Sequence: int64(n + 1), CreatedAt: "2026-01-02T03:04:05Z",
			})
		}
	}
	return all
}

// TestWithServer runs all tests that need a broker on one server, because a server takes seconds to boot.
func TestWithServer(t *testing.T) {
	server := servers.StartRabbitMQ(t)
	t.Run("publisher", func(t *testing.T) { testPublisher(t, server) })
	t.Run("topology", func(t *testing.T) { testTopology(t, server) })
	t.Run("members", func(t *testing.T) { testMembers(t, server) })
	t.Run("consumer", func(t *testing.T) { testConsumer(t, server) })
	t.Run("packed", func(t *testing.T) { testPacked(t, server) })
}

func testPublisher(t *testing.T, server *servers.RabbitMQ) {
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	raw, err := amqp.Dial(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	publisher := func(exchange string, o *rabbitmq.PublisherOptions) *rabbitmq.Publisher {
		p, err := rabbitmq.NewPublisher(client, exchange, o)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}

	t.Run("all messages arrive in the order of their keys", func(t *testing.T) {
		if err := rabbitmq.Declare(ctx, client, "orders", rabbitmq.Group{Name: "billing", Queues: 3}); err != nil {
			t.Fatal(err)
		}
		var reported atomic.Int64
		p := publisher("orders", &rabbitmq.PublisherOptions{Window: 16, Sent: func(_ context.Context, r relay.BatchReport) { reported.Add(int64(r.Messages)) }})
		if err := p.Publish(ctx, groups(200, 5)); err != nil {
			t.Fatal(err)
		}
		if reported.Load() != 1000 {
			t.Errorf("%d messages reported, want 1000", reported.Load())
		}
		next, total := map[string]int64{}, 0
		for q := range 3 {
			for _, m := range drain(t, raw, fmt.Sprintf("billing.%d", q)) {
				key := m.Headers[consumer.PropertyKey].(string)
				if got := m.Headers[consumer.PropertySequence].(int64); got != next[key]+1 {
					t.Errorf("%s: sequence %d after %d", key, got, next[key])
				}
				if rabbitmq.Slot(key)*3/rabbitmq.Slots != q {
					t.Errorf("%s of slot %d is in queue %d", key, rabbitmq.Slot(key), q)
				}
				if m.DeliveryMode != amqp.Persistent || m.MessageId == "" || m.Type != "Happened" || m.AppId != "/orders" || len(m.Headers) != 4 || m.Timestamp.Year() != 2026 {
					t.Errorf("message %+v", m)
				}
				next[key]++
				total++
			}
		}
		if total != 1000 {
			t.Errorf("%d messages in the queues, want 1000", total)
		}
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
	})

	t.Run("missing exchange blocks", func(t *testing.T) {
		var wrong atomic.Int64
		p := publisher("nowhere", &rabbitmq.PublisherOptions{Sent: func(_ context.Context, r relay.BatchReport) { // the channel may end at any message of a call
			if r.Accepted != 0 || relay.ReasonOf(r.Err) != "exchange_not_found" {
				wrong.Add(1)
			}
		}})
		for range 30 {
			wantAll(t, p.Publish(ctx, groups(60, 2)), 60, relay.Blocked, "exchange_not_found")
		}
		if n := wrong.Load(); n > 0 {
			t.Errorf("%d reports do not say that the exchange is missing", n)
		}
	})

	t.Run("missing queue blocks until it is declared", func(t *testing.T) {
		if err := rabbitmq.Declare(ctx, client, "unbound"); err != nil {
			t.Fatal(err)
		}
		p := publisher("unbound", nil)
		wantAll(t, p.Publish(ctx, groups(40, 2)), 40, relay.Blocked, "no_queue")
		if err := rabbitmq.Declare(ctx, client, "unbound", rabbitmq.Group{Name: "bound"}); err != nil {
			t.Fatal(err)
		}
		if err := p.Publish(ctx, groups(40, 2)); err != nil {
			t.Error("after the queue was declared:", err)
		}
	})

	t.Run("headers exchange selects actions", func(t *testing.T) {
		if err := rabbitmq.Declare(ctx, client, "sorted", rabbitmq.Group{Name: "all", Queues: 2}); err != nil {
			t.Fatal(err)
		}
		ch, err := raw.Channel()
		if err != nil {
			t.Fatal(err)
		}
		_, queueErr := ch.QueueDeclare("placed", true, false, false, false, nil)
		err = errors.Join(queueErr, ch.ExchangeDeclare("by-action", amqp.ExchangeHeaders, true, false, false, false, nil),
			ch.QueueBind("placed", "", "by-action", false, amqp.Table{"x-match": "any", rabbitmq.HeaderAction: "Placed"}))
		for slot := range rabbitmq.Slots {
			err = errors.Join(err, ch.ExchangeBind("by-action", fmt.Sprintf("%02x", slot), "sorted", false, nil))
		}
		if err != nil {
			t.Fatal(err)
		}
		both := groups(20, 2)
		for i := range both {
			both[i].Messages[1].Action = "Placed"
		}
		if err := publisher("sorted", nil).Publish(ctx, both); err != nil {
			t.Fatal(err)
		}
		if n := len(drain(t, raw, "placed")); n != 20 {
			t.Errorf("%d messages of the action, want 20", n)
		}
	})

	t.Run("too large message fails only its key", func(t *testing.T) {
		if err := rabbitmq.Declare(ctx, client, "limits", rabbitmq.Group{Name: "limited"}); err != nil {
			t.Fatal(err)
		}
		bad := groups(3, 3)
		bad[1].Messages[1].Body = make([]byte, 2000)
		var accepted atomic.Int64
		err := publisher("limits", &rabbitmq.PublisherOptions{MaxMessageBytes: 1000, Sent: func(_ context.Context, r relay.BatchReport) {
			accepted.Add(int64(r.Accepted))
		}}).Publish(ctx, bad)
		failed, ok := errors.AsType[*relay.PublishError](err)
		if !ok || len(failed.Keys) != 1 || failed.Keys[0].Group != 1 || failed.Keys[0].Sent != 1 || relay.ReasonOf(failed.Keys[0].Err) != "too_large" {
			t.Errorf("got %v", err)
		}
		if accepted.Load() != 7 {
			t.Errorf("%d messages reported as accepted, want the 7 beside the failed ones", accepted.Load())
		}
	})

	// Properties and headers are one frame, which cannot be continued. The broker closes the connection, and
	// with it all channels, if it is too large.
	t.Run("too large headers fail only their key", func(t *testing.T) {
		if err := rabbitmq.Declare(ctx, client, "headers", rabbitmq.Group{Name: "headed"}); err != nil {
			t.Fatal(err)
		}
		p := publisher("headers", nil)
		for name, spoil := range map[string]func(m *relay.Message, text string){
			"time":  func(m *relay.Message, text string) { m.CreatedAt = text },
			"trace": func(m *relay.Message, text string) { m.Traceparent = text },
			"key":   func(m *relay.Message, text string) { m.Key = text },
		} {
			bad := groups(3, 2)
			spoil(&bad[1].Messages[0], strings.Repeat("x", 200_000))
			err := p.Publish(ctx, bad)
			failed, ok := errors.AsType[*relay.PublishError](err)
			if !ok || len(failed.Keys) != 1 || failed.Keys[0].Group != 1 || failed.Keys[0].Sent != 0 || relay.ClassOf(failed.Keys[0].Err) != relay.Refused {
				t.Errorf("%s: got %v, want one key refused", name, err)
			}
		}
	})

	t.Run("full queue refuses until it is read", func(t *testing.T) {
		if err := rabbitmq.Declare(ctx, client, "small", rabbitmq.Group{Name: "full", Queues: 1, MaxBytes: 2000}); err != nil {
			t.Fatal(err)
		}
		p := publisher("small", nil)
		var sent int
		var err error
		all := groups(1, 3000)
		for err == nil && sent < 3000 {
			err = p.Publish(ctx, []relay.Group{{Key: "key-0", Messages: all[0].Messages[sent : sent+1]}})
			if err == nil {
				sent++
			}
		}
		wantAll(t, err, 1, relay.Outage, "nacked")
		got := drain(t, raw, "full.0")
		if len(got) != sent {
			t.Errorf("%d messages accepted, %d in the queue", sent, len(got))
		}
		if err := p.Publish(ctx, []relay.Group{{Key: "key-0", Messages: all[0].Messages[sent : sent+1]}}); err != nil {
			t.Error("after the queue was read:", err)
		}
	})

	t.Run("too long source is invalid", func(t *testing.T) {
		if _, err := rabbitmq.NewPublisher(client, "orders", &rabbitmq.PublisherOptions{Source: strings.Repeat("x", 256)}); err == nil {
			t.Error("accepted")
		}
	})

	t.Run("canceled context", func(t *testing.T) {
		over, end := context.WithCancel(ctx)
		end()
		if err := publisher("orders", nil).Publish(over, groups(2, 1)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("reconnects after a crash of the broker", func(t *testing.T) {
		if !testenv.Full(t) { // a restart takes five seconds of processor time
			t.Skip("the full size only: testMembers cuts the connections of a publisher")
		}
		p := publisher("orders", nil)
		server.Kill()
		err := p.Publish(ctx, groups(2, 1))
		failed, ok := errors.AsType[*relay.PublishError](err)
		if !ok || len(failed.Keys) != 2 || relay.ClassOf(failed.Keys[0].Err) != relay.Outage {
			t.Fatalf("got %v", err)
		}
		server.Start(t)
		for try := 0; ; try++ {
			if err = p.Publish(ctx, groups(2, 1)); err == nil {
				break
			}
			if try == 100 {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// wantAll checks that every key failed at its first message with this class and reason.
func wantAll(t *testing.T, err error, keys int, class relay.Class, reason string) {
	t.Helper()
	failed, ok := errors.AsType[*relay.PublishError](err)
	if !ok || len(failed.Keys) != keys {
		t.Fatalf("got %v, want %d keys failed", err, keys)
	}
	for i, k := range failed.Keys {
		if k.Group != i || k.Sent != 0 || relay.ClassOf(k.Err) != class || relay.ReasonOf(k.Err) != reason {
			t.Errorf("key %d: after %d messages %v, want %v: %s", k.Group, k.Sent, k.Err, class, reason)
		}
	}
}

// drain receives all messages of a queue.
func drain(t *testing.T, conn *amqp.Connection, queue string) []amqp.Delivery {
	t.Helper()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ch.Close() }()
	state, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	deliveries, err := ch.Consume(queue, "", true, false, false, false, nil) // Get is not allowed on a queue with a single active consumer
	if err != nil {
		t.Fatal(err)
	}
	var all []amqp.Delivery
	for len(all) < state.Messages {
		select {
		case m := <-deliveries:
			all = append(all, m)
		case <-time.After(time.Minute):
			t.Fatalf("queue %s: received %d of %d messages", queue, len(all), state.Messages)
		}
	}
	return all
}

func testTopology(t *testing.T, server *servers.RabbitMQ) {
	t.Run("another number of queues is refused, and the documented procedure keeps the order", func(t *testing.T) {
		raw, err := amqp.Dial(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = raw.Close() }()
		ch, err := raw.Channel()
		if err != nil {
			t.Fatal(err)
		}
		c := newConsumers(t, server, rabbitmq.Group{Name: "counts", Queues: 4})
		all := versions(groups(40, 6))
		var ledger servers.Ledger
		for step, queues := range []int{4, 8, 3} {
			for _, other := range []int{1, queues - 1, queues + 1, 2 * queues} {
				err := rabbitmq.Declare(t.Context(), c.client, c.group.Name, rabbitmq.Group{Name: c.group.Name, Queues: other})
				if err == nil || !strings.Contains(err.Error(), "Changing queues") {
					t.Errorf("from %d to %d queues: %v", queues, other, err)
				}
			}
			if err := rabbitmq.Declare(t.Context(), c.client, c.group.Name, c.group); err != nil {
				t.Errorf("declared again: %v", err)
			}
			part := make([]relay.Group, len(all))
			for i, g := range all {
				part[i] = relay.Group{Key: g.Key, Messages: g.Messages[2*step : 2*step+2]}
			}
			stop := c.start(t, ledger.Handle, rabbitmq.ConsumerOptions{Options: ledger.Options()})
			c.publish(t, part)
			testkit.Eventually(t, time.Minute, "empty queues", func() bool { return ledger.Count() == 80*(step+1) })
			stop()
			if step == 2 {
				break
			}
			for i := range queues {
				if left, err := ch.QueueDelete(fmt.Sprintf("counts.%d", i), false, false, false); err != nil || left > 0 {
					t.Fatalf("queue %d: %d messages left, %v", i, left, err)
				}
			}
			c.group.Queues = []int{8, 3}[step]
			if err := rabbitmq.Declare(t.Context(), c.client, c.group.Name, c.group); err != nil {
				t.Fatal(err)
			}
		}
		ledger.Judge(t, all)
		if _, repeats := ledger.Messages(); repeats > 0 {
			t.Errorf("%d events were delivered twice", repeats)
		}
		if _, err := ch.QueueDelete("counts.0", false, false, false); err != nil {
			t.Fatal(err)
		}
		if err := rabbitmq.Declare(t.Context(), c.client, c.group.Name, c.group); err != nil {
			t.Errorf("after a Declare that was interrupted: %v", err)
		}
	})

	t.Run("a consumer of fewer queues than there are reports those without a consumer", func(t *testing.T) {
		c := newConsumers(t, server, rabbitmq.Group{Name: "forgotten", Queues: 3})
		for queues, want := range map[int]bool{2: true, 3: false} {
			var log lines
			k, err := rabbitmq.NewConsumer(c.client, rabbitmq.Group{Name: c.group.Name, Queues: queues}, func(context.Context, *consumer.Event) error { return nil },
				&rabbitmq.ConsumerOptions{Options: consumer.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}})
			stop := servers.Consume(t, k, err)
			eventually(t, "consumers of all queues", func() bool {
				found, err := rabbitmq.Inspect(t.Context(), c.client, rabbitmq.Group{Name: c.group.Name, Queues: 3})
				return err == nil && found[0].Consumers*found[queues-1].Consumers == 1
			})
			stop()
			if told := strings.Contains(log.String(), "forgotten.2") && strings.Contains(log.String(), "Group.Queues"); told != want {
				t.Errorf("%d of 3 queues: reported %v, want %v; log:\n%s", queues, told, want, log.String())
			}
			if _, err := rabbitmq.Inspect(t.Context(), c.client, rabbitmq.Group{Name: c.group.Name, Queues: queues}); errors.Is(err, rabbitmq.ErrMoreQueues) != want {
				t.Errorf("%d of 3 queues: examined with %v", queues, err)
			}
		}
	})

	t.Run("queues with other arguments are refused with the remedy", func(t *testing.T) {
		c := newConsumers(t, server, rabbitmq.Group{Name: "arguments", Queues: 1})
		err := rabbitmq.Declare(t.Context(), c.client, "arguments", rabbitmq.Group{Name: "arguments", Queues: 1, MaxBytes: 1 << 20})
		if err == nil || !strings.Contains(err.Error(), "Changing queues") || !strings.Contains(err.Error(), "x-max-length-bytes") {
			t.Error(err)
		}
	})
}

// One member of a cluster is away, so that the first request, and that after a loss of the connection, go to the other.
func testMembers(t *testing.T, server *servers.RabbitMQ) {
	var log lines
	var dials []string
	network := &cuttable{}
	member := func(name string) string { return strings.Replace(server.URL, "127.0.0.1", name, 1) }
	client, err := rabbitmq.NewClient(rabbitmq.Config{
		URL: member("away") + ", " + member("localhost"), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Dial: func(ctx context.Context, kind, address string) (net.Conn, error) {
			host, _, _ := net.SplitHostPort(address)
			if dials = append(dials, host); host == "away" {
				return nil, errors.New("unreachable")
			}
			return network.dial(ctx, kind, address)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if err := rabbitmq.Declare(t.Context(), client, "members", rabbitmq.Group{Name: "members", Queues: 2}); err != nil {
		t.Fatal(err)
	}
	network.cut()
	p, err := rabbitmq.NewPublisher(client, "members", nil)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "published after the connection was cut", func() bool { return p.Publish(t.Context(), groups(1, 1)) == nil })
	if !slices.Equal(dials, []string{"away", "localhost", "away", "localhost"}) { // after a loss the next member is first
		t.Errorf("dials of %q", dials)
	}

	queues, err := rabbitmq.Inspect(t.Context(), client, rabbitmq.Group{Name: "members", Queues: 3})
	if err != nil || len(queues) != 4 || !queues[0].Exists || queues[0].Messages+queues[1].Messages != 1 || queues[2].Exists || !queues[3].Exists {
		t.Errorf("queues %+v, %v: want two of three with the event, and one for dead letters", queues, err)
	}

	for _, c := range []struct{ memory, logged, reason string }{{"1", "RabbitMQ accepts no messages", "broker_full"}, {"2GB", "accepts messages again", ""}} {
		if _, err := server.Control(t.Context(), "set_vm_memory_high_watermark", "absolute", c.memory); err != nil {
			t.Fatal(err)
		}
		eventually(t, c.logged, func() bool {
			err := p.Publish(t.Context(), groups(1, 1))
			if err != nil && relay.ReasonOf(err) != "broker_full" {
				t.Errorf("%v: an alarm is no failure of the connection", err)
			}
			return strings.Contains(log.String(), c.logged) && (c.reason == "" && err == nil || err != nil && relay.ReasonOf(err) == c.reason)
		})
	}
}

// eventually waits for done, for a minute at most.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for began := time.Now(); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// lines is a buffer for concurrent use.
type lines struct {
	mu sync.Mutex
	strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Builder.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Builder.String()
}
