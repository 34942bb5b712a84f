package rabbitmq_test

import (
	"fmt"
	"strings"
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
