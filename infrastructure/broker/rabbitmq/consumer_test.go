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
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/rabbitmq"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/postgresinbox"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/infrastructure/store/postgres"
	"feedbox/tests/servers"
	"feedbox/tests/testenv"
	"feedbox/tests/testkit"
)

// cuttable is a network whose connections can be cut.
type cuttable struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (c *cuttable) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.conns = append(c.conns, conn)
	}
	return conn, err
}

func (c *cuttable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

// doctor knows that RabbitMQ has no duplicate window.
type doctor struct{ operator.BrokerDoctor }

func (doctor) Window(context.Context, string) operator.Window { return operator.Window{} }

// consumers is a group of consumers on a server.
type consumers struct {
	server  *servers.RabbitMQ
	client  *rabbitmq.Client // of the publisher
	group   rabbitmq.Group
	packs   func() bool // whether the next publisher packs events; nil: none does
	network cuttable
}

func newConsumers(t *testing.T, server *servers.RabbitMQ, group rabbitmq.Group) *consumers {
	t.Helper()
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	c := &consumers{server: server, client: client, group: group}
	if err := rabbitmq.Declare(t.Context(), client, group.Name, group); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *consumers) start(t *testing.T, handler consumer.Handler, o rabbitmq.ConsumerOptions) (stop func()) {
	t.Helper()
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: c.server.URL, Dial: c.network.dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	k, err := rabbitmq.NewConsumer(client, c.group, handler, &o)
	return servers.Consume(t, k, err)
}

// publish retries until all messages are accepted, as the relay does.
func (c *consumers) publish(t *testing.T, all []relay.Group) {
	t.Helper()
	p, err := rabbitmq.NewPublisher(c.client, c.group.Name, &rabbitmq.PublisherOptions{PackKeys: c.packs != nil && c.packs()})
	if err != nil {
		t.Fatal(err)
	}
	for len(all) > 0 {
		err := p.Publish(t.Context(), all)
		failed, _ := errors.AsType[*relay.PublishError](err)
		if err != nil && failed == nil {
			t.Fatal(err)
		}
		var left []relay.Group
		if failed != nil {
			for _, k := range failed.Keys {
				left = append(left, relay.Group{Key: all[k.Group].Key, Messages: all[k.Group].Messages[k.Sent:]})
			}
			time.Sleep(100 * time.Millisecond)
		}
		all = left
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func versions(all []relay.Group) []relay.Group {
	for _, g := range all {
		for i := range g.Messages {
			g.Messages[i].AggregateVersion = g.Messages[i].Sequence
		}
	}
	return all
}

func testConsumer(t *testing.T, server *servers.RabbitMQ) {
	t.Run("a wrong queue or password is logged with its remedy", func(t *testing.T) {
		wantFirstFailure(t, rabbitmq.Config{URL: server.URL}, time.Minute, "queue_not_found", "nosuch.0", "rabbitmq.Declare")
		wantFirstFailure(t, rabbitmq.Config{URL: strings.Replace(server.URL, "guest:guest", "guest:wrong", 1)}, time.Minute, "access_refused", "username or password not allowed", "correct the user")
	})
	// Handlers fail, consumers restart, connections are cut, and the broker is killed at full size.
	// Every event has one effect, in the order of its key, whether or not it was packed.
	t.Run("faults cause no loss, no repeat and no disorder", func(t *testing.T) {
		rnd := testenv.Random(t)
		c := newConsumers(t, server, rabbitmq.Group{Name: "faults", Queues: 4})
		var parts atomic.Int64
		c.packs = func() bool { return parts.Add(1)%2 == 0 }
		var ledger servers.Ledger
		var tries atomic.Int64
		handler := func(ctx context.Context, e *consumer.Event) error {
			switch n := tries.Add(1); {
			case n%17 == 0:
				return errors.New("not now")
			case n%31 == 0:
				panic("cannot")
			case n%7 == 0:
				time.Sleep(time.Duration(n%5) * time.Millisecond)
			}
			return ledger.Handle(ctx, e)
		}
		o := rabbitmq.ConsumerOptions{Options: ledger.Options(), Prefetch: 32}
		o.RetryDelay, o.RetryDelayMax, o.Attempts = 5*time.Millisecond, 20*time.Millisecond, -1
		stops := []func(){c.start(t, handler, o), c.start(t, handler, o)}
		all := append(versions(groups(60, 40)), inSlot(10, 40)...)
		published := make(chan struct{})
		go func() {
			defer close(published)
			for n := range 8 {
				part := make([]relay.Group, len(all))
				for i, g := range all {
					part[i] = relay.Group{Key: g.Key, Messages: g.Messages[n*5 : n*5+5]}
				}
				c.publish(t, part)
			}
		}()
		for n := range 8 {
			time.Sleep(time.Duration(50+rnd.IntN(200)) * time.Millisecond)
			switch {
			case n == 4 && testenv.Full(t):
				server.Kill()
				server.Start(t)
			case n == 1, n == 3, n == 4, n == 6:
				c.network.cut()
			default:
				i := n % len(stops)
				stops[i]()
				stops[i] = c.start(t, handler, o)
			}
		}
		<-published
		ledger.Judge(t, all)
	})

	t.Run("refused events park their keys in order", func(t *testing.T) {
		database := servers.StartPostgres(t).Database(t)
		db, err := postgres.Open(database, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		pool, err1 := pgxpool.New(t.Context(), database)
		store, err2 := postgres.ParkedOf(db, "billing")
		inbox, err3 := postgresinbox.New(pool, "billing", nil)
		if err := errors.Join(err1, err2, err3, db.Migrate(t.Context()), inbox.Create(t.Context())); err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		c := newConsumers(t, server, rabbitmq.Group{Name: "parks", Queues: 4})
		var published atomic.Int64
		c.packs = func() bool { return published.Add(1)%2 == 0 }
		servers.TestParked(t, servers.ParkedKit{
			Store: store, Inbox: inbox, Publish: func(all []relay.Group) { c.publish(t, all) }, Keys: testenv.Sample(t, 4, 10),
			Start: func(o consumer.Options, handler consumer.Handler) func() {
				process := &consumers{server: server, client: c.client, group: c.group}
				stop := process.start(t, handler, rabbitmq.ConsumerOptions{Options: o, Prefetch: 32})
				return func() { process.network.cut(); stop() }
			},
		})
	})

	t.Run("failed event blocks only its key", func(t *testing.T) {
		c := newConsumers(t, server, rabbitmq.Group{Name: "waits", Queues: 1})
		var ledger servers.Ledger
		var recovered atomic.Bool
		c.start(t, func(ctx context.Context, e *consumer.Event) error {
			if e.Key == "key-3" && !recovered.Load() {
				return errors.New("not now")
			}
			return ledger.Handle(ctx, e)
		}, rabbitmq.ConsumerOptions{Options: consumer.Options{
			Inbox: &ledger, Concurrency: 1, RetryDelay: 20 * time.Millisecond, RetryDelayMax: 20 * time.Millisecond, Attempts: -1,
		}})
		all := versions(groups(8, 3))
		c.publish(t, all)
		testkit.Eventually(t, time.Minute, "the other keys", func() bool { return ledger.Count() == 21 })
		recovered.Store(true)
		ledger.Judge(t, all)
	})

	t.Run("dead letters have the reason", func(t *testing.T) {
		c := newConsumers(t, server, rabbitmq.Group{Name: "letters", Queues: 2})
		var ledger servers.Ledger
		var mu sync.Mutex
		var outcomes []string
		o := rabbitmq.ConsumerOptions{Options: consumer.Options{Inbox: &ledger, RetryDelay: time.Millisecond, RetryDelayMax: time.Millisecond, Attempts: 3, GapDeliveries: -1}}
		o.Observe = func(_ context.Context, out consumer.Outcome) {
			mu.Lock()
			defer mu.Unlock()
			outcomes = append(outcomes, out.Event.ID+" "+out.Action.String())
		}
		c.start(t, func(ctx context.Context, e *consumer.Event) error {
			switch e.ID {
			case "0-0":
				return errors.New("never")
			case "0-1":
				return consumer.DeadLetter(strings.Repeat("unknown ", 20_000), errors.New("no such thing")) // longer than a frame
			}
			return ledger.Handle(ctx, e)
		}, o)
		c.publish(t, groups(1, 3))
		testkit.Eventually(t, time.Minute, "the event after the dead letters", func() bool { return ledger.Count() == 1 })
		raw, err := amqp.Dial(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = raw.Close() }()
		letters := drain(t, raw, "letters.dead-letters")
		if len(letters) != 2 {
			t.Fatalf("%d dead letters, want 2", len(letters))
		}
		for i, want := range []string{"0-0 too_many_attempts: never", "0-1 " + strings.Repeat("unknown ", 128) + ": no such thing"} {
			h := letters[i].Headers
			if got := fmt.Sprintf("%s %s: %s", letters[i].MessageId, h[rabbitmq.HeaderDeadLetterReason], h[rabbitmq.HeaderDeadLetterDescription]); got != want {
				t.Errorf("dead letter %q, want %q", got, want)
			}
			if h[consumer.PropertyKey] != "key-0" || letters[i].AppId != "/letters" || string(letters[i].Body) != `{"a":1}` {
				t.Errorf("dead letter %+v", letters[i])
			}
		}
		want := []string{"0-0 abandoned", "0-0 abandoned", "0-0 dead_lettered", "0-1 dead_lettered", "0-2 handled"}
		testkit.Eventually(t, time.Minute, "outcomes", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Equal(outcomes, want)
		})
	})

	t.Run("dead letters are read, resubmitted and discarded", func(t *testing.T) {
		c := newConsumers(t, server, rabbitmq.Group{Name: "operators", Queues: 2})
		servers.TestDeadLetters(t, servers.Letters{
			Port: rabbitmq.NewDeadLetters(c.client), Doctor: doctor{}, Consumer: "operators:2", Publish: c.publish,
			Start: func(t *testing.T, handler consumer.Handler, inbox consumer.Inbox) func() {
				return c.start(t, handler, rabbitmq.ConsumerOptions{Options: consumer.Options{Inbox: inbox}})
			},
			Eventually: func(t *testing.T, what string, ok func() bool) { testkit.Eventually(t, time.Minute, what, ok) },
		})
		if _, err := rabbitmq.NewDeadLetters(c.client).Claim(t.Context(), "operators", nil); err == nil {
			t.Error("letters may be sent to the queues of another number of queues")
		}
	})

	// The id of a letter that was removed is not that of another one, whatever the order of a read is.
	t.Run("letters keep their ids", func(t *testing.T) {
		c := newConsumers(t, server, rabbitmq.Group{Name: "ids", Queues: 1})
		raw, err := amqp.Dial(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = raw.Close() }()
		ch, err := raw.Channel()
		if err == nil {
			err = ch.Confirm(false)
		}
		for i, id := range []string{"", "", "", "event", "event"} {
			if err == nil {
				var confirmed *amqp.DeferredConfirmation
				confirmed, err = ch.PublishWithDeferredConfirm("", "ids.dead-letters", true, false, amqp.Publishing{MessageId: id, Body: []byte(fmt.Sprint(i))})
				if err == nil {
					_, err = confirmed.WaitContext(t.Context())
				}
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		letters := rabbitmq.NewDeadLetters(c.client)
		read := func() map[string]string {
			t.Helper()
			found, _, err := letters.Read(t.Context(), "ids:1", 100)
			if err != nil {
				t.Fatal(err)
			}
			bodies := map[string]string{}
			for _, l := range found {
				bodies[l.ID] = string(l.Body)
			}
			return bodies
		}
		remove := func(id string) error {
			claim, err := letters.Claim(t.Context(), "ids:1", []string{id})
			if err != nil {
				t.Fatal(err)
			}
			defer claim.Release(t.Context())
			return claim.Remove(t.Context(), id)
		}
		shown := map[string]string{}
		testkit.Eventually(t, time.Minute, "5 letters", func() bool { shown = read(); return len(shown) == 5 })
		left := len(shown)
		for id, body := range shown {
			left--
			if strings.HasPrefix(id, "#") {
				t.Errorf("a shell takes %s as a comment", id)
			}
			if err := remove(id); err != nil {
				t.Errorf("letter %s: %v", id, err)
			}
			if err := remove(id); !errors.Is(err, relayport.ErrNoLetter) {
				t.Errorf("letter %s is removed a second time: %v", id, err)
			}
			now := read()
			for id, body := range now {
				if shown[id] != body {
					t.Errorf("letter %s has the body %s, before %s", id, body, shown[id])
				}
			}
			if len(now) != left {
				t.Fatalf("%d letters remain without the one of body %s, want %d", len(now), body, left)
			}
		}
	})

	// A wake-up that no consumer has received expires, and the broker moves it like an event.
	t.Run("expired wake-ups are no dead letters", func(t *testing.T) {
		c := newConsumers(t, server, rabbitmq.Group{Name: "asleep", Queues: 1})
		raw, err := amqp.Dial(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = raw.Close() }()
		ch, err := raw.Channel()
		for _, kind := range []string{"feedbox.wakeUp", "Paid"} {
			if err == nil {
				err = ch.PublishWithContext(t.Context(), "", "asleep.0", true, false, amqp.Publishing{Type: kind, Expiration: "1", Headers: amqp.Table{consumer.PropertyKey: "k"}})
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, time.Minute, "two expired messages", func() bool {
			queues, err := rabbitmq.Inspect(t.Context(), c.client, c.group)
			return err == nil && queues[1].Messages == 2
		})
		found, more, err := rabbitmq.NewDeadLetters(c.client).Read(t.Context(), "asleep:1", 1)
		if err != nil || more || len(found) != 1 || found[0].Action != "Paid" {
			t.Errorf("letters %+v, more %v, %v; want the event only", found, more, err)
		}
		testkit.Eventually(t, time.Minute, "the event alone", func() bool {
			queues, err := rabbitmq.Inspect(t.Context(), c.client, c.group)
			return err == nil && queues[1].Messages == 1
		})
	})

	// A queue was deleted. The letters of other queues are still sent, each to the queue of its key.
	t.Run("resubmission goes to the queue of its key", func(t *testing.T) {
		c := newConsumers(t, server, rabbitmq.Group{Name: "slots", Queues: 8})
		stop := c.start(t, func(context.Context, *consumer.Event) error { return consumer.DeadLetter("unknown", nil) }, rabbitmq.ConsumerOptions{})
		c.publish(t, groups(20, 1))
		letters := rabbitmq.NewDeadLetters(c.client)
		var found []relayport.DeadLetter
		testkit.Eventually(t, time.Minute, "20 letters", func() bool {
			var err error
			found, _, err = letters.Read(t.Context(), c.group.Name, 100)
			return err == nil && len(found) == 20
		})
		stop()
		const deleted = 3
		raw, err := amqp.Dial(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = raw.Close() }()
		ch, err := raw.Channel()
		if err == nil {
			_, err = ch.QueueDelete(fmt.Sprintf("slots.%d", deleted), false, false, false)
		}
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, l := range found {
			ids = append(ids, l.ID)
		}
		claim, err := letters.Claim(t.Context(), c.group.Name, ids)
		if err != nil {
			t.Fatal(err)
		}
		want, sent := make([]int, 9), 0
		for _, l := range found {
			queue := rabbitmq.Slot(l.Key) * 8 / rabbitmq.Slots
			want[queue]++
			err := claim.Resubmit(t.Context(), l.ID, relayport.Resubmission{ID: "r" + l.Event})
			if (err != nil) != (queue == deleted) {
				t.Errorf("letter of queue %d: %v", queue, err)
			}
			if err == nil {
				sent++
			}
		}
		claim.Release(t.Context())
		if want[deleted] == 0 {
			t.Fatal("the deleted queue has no key")
		}
		want[deleted], want[8] = 0, len(found)
		var got []int
		testkit.Eventually(t, time.Minute, "all messages", func() bool {
			queues, err := rabbitmq.Inspect(t.Context(), c.client, c.group)
			got = nil
			sum := 0
			for _, q := range queues {
				got, sum = append(got, q.Messages), sum+q.Messages
			}
			return err == nil && sum == sent+len(found)
		})
		if !slices.Equal(got, want) {
			t.Errorf("the queues have %v messages, want %v", got, want)
		}
	})

	// The handler of one event never returns, and each consumer dies with it. The events that the broker
	// has sent in advance die as often.
	deaths := func(t *testing.T, name string, all []relay.Group, packs bool) {
		const limit = 2
		c := newConsumers(t, server, rabbitmq.Group{Name: name, Queues: 1, DeliveryLimit: limit})
		c.packs = func() bool { return packs }
		first := all[0].Messages[0].ID
		if !packs {
			c.publish(t, all[:1]) // at the head of the queue
			c.publish(t, all[1:])
		} else {
			c.publish(t, all)
		}
		var ledger servers.Ledger
		var poison atomic.Int64
		raw, err := amqp.Dial(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = raw.Close() }()
		for range 3 * limit {
			begun := make(chan struct{})
			begin := sync.OnceFunc(func() { close(begun) })
			o := rabbitmq.ConsumerOptions{Options: ledger.Options()}
			o.Concurrency, o.DrainTimeout = 1, time.Millisecond
			stop := c.start(t, func(ctx context.Context, e *consumer.Event) error {
				if e.ID != first {
					return ledger.Handle(ctx, e)
				}
				poison.Add(1)
				begin()
				<-ctx.Done()
				return context.Cause(ctx)
			}, o)
			testkit.Eventually(t, time.Minute, "a handler, or all other events", func() bool {
				select {
				case <-begun:
					return true
				default:
					return ledger.Count() == 39
				}
			})
			c.network.cut()
			stop()
		}
		if n := poison.Load(); n < limit || n > 2*limit {
			t.Errorf("the event was passed to a handler %d times, want %d to %d", n, limit, 2*limit)
		}
		letters := drain(t, raw, name+".dead-letters")
		if len(letters) != 1 || letters[0].MessageId != first || letters[0].Headers[rabbitmq.HeaderDeadLetterReason] != consumer.ReasonDeliveries {
			t.Errorf("%d dead letters, want that of %s: %+v", len(letters), first, letters)
		}
		if n := ledger.Count(); n != 39 {
			t.Errorf("%d events handled, want all 39 others", n)
		}
	}
	t.Run("only events whose handlers died are dead-lettered", func(t *testing.T) { deaths(t, "deaths", versions(groups(20, 2)), false) })
	t.Run("only the events of a packed message whose handlers died are dead-lettered", func(t *testing.T) { deaths(t, "packed-deaths", inSlot(20, 2), true) })

	t.Run("stop finishes handlers and requeues the rest", func(t *testing.T) {
		c := newConsumers(t, server, rabbitmq.Group{Name: "stops", Queues: 1})
		var ledger servers.Ledger
		begun, end := make(chan struct{}), make(chan struct{})
		stop := c.start(t, func(ctx context.Context, e *consumer.Event) error {
			close(begun) // panics if a second event is handled
			<-end
			return ledger.Handle(ctx, e)
		}, rabbitmq.ConsumerOptions{Options: consumer.Options{Inbox: &ledger}})
		all := versions(groups(1, 5))
		c.publish(t, all)
		<-begun
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		c.start(t, ledger.Handle, rabbitmq.ConsumerOptions{Options: ledger.Options()})
		select {
		case <-stopped:
			t.Error("Run returned before its handler")
		case <-time.After(300 * time.Millisecond): // a slow machine can only hide the mistake
		}
		if ledger.Count() > 0 {
			t.Error("another consumer received events after one that is being handled")
		}
		close(end)
		<-stopped
		ledger.Judge(t, all)
	})
}

// wantFirstFailure runs a consumer of a group that does not exist.
func wantFirstFailure(t *testing.T, at rabbitmq.Config, within time.Duration, reason, cause, advice string) {
	t.Helper()
	client, err := rabbitmq.NewClient(at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	servers.WantFirstFailure(t, func() (servers.Consumer, error) {
		return rabbitmq.NewConsumer(client, rabbitmq.Group{Name: "nosuch", Queues: 1}, func(context.Context, *consumer.Event) error { return nil }, nil)
	}, within, reason, cause, advice)
}

// A consumer that cannot receive says why and what to do about it, in the default log. A wrong queue
// needs a server: see testConsumer.
func TestFirstFailureIsLoggedWithCauseAndRemedy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wantFirstFailure(t, rabbitmq.Config{URL: "amqp://localhost", Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}}, time.Second, "unreachable", "connection refused", "port")
	})
}

func TestNewConsumerReportsAllInvalidOptions(t *testing.T) {
	t.Parallel()
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: "amqp://localhost"})
	if err != nil {
		t.Fatal(err)
	}
	for prefetch, client := range map[int]*rabbitmq.Client{-1: client, 1 << 16: client, 1: nil} { // AMQP has 16 bits for it, and 0 is no limit
		_, err := rabbitmq.NewConsumer(client, rabbitmq.Group{}, nil, &rabbitmq.ConsumerOptions{Prefetch: prefetch, Options: consumer.Options{Concurrency: -1}})
		for _, text := range []string{"needs a name", "a client and a Prefetch", "Concurrency"} {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("error %v does not contain %q", err, text)
			}
		}
	}
}
