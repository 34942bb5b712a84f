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
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/rabbitmq"
	"feedbox/tests/servers"
	"feedbox/tests/testkit"
)

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
