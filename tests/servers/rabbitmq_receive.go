package servers

import (
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/infrastructure/rabbitmq"
	"feedbox/infrastructure/verify"
)

// Receive gives all that waits in the queues of a group, in the order of each, and returns when
// nothing comes any more.
func (r *RabbitMQ) Receive(t testing.TB, group string, queues int, each func(m verify.Message)) {
	t.Helper()
	conn, err := amqp.Dial(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for n := range queues {
		ch, err := conn.Channel()
		if err != nil {
			t.Fatal(err)
		}
		deliveries, err := ch.Consume(fmt.Sprintf("%s.%d", group, n), "", false, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		for quiet := false; !quiet; {
			select {
			case d := <-deliveries:
				sequence, _ := d.Headers[rabbitmq.HeaderSequence].(int64)
				version, _ := d.Headers[rabbitmq.HeaderAggregateVersion].(int64)
				key, _ := d.Headers[rabbitmq.HeaderKey].(string)
				each(verify.Message{ID: d.MessageId, Session: key, Subject: d.Type, Sequence: sequence, Version: version})
				if err := d.Ack(false); err != nil {
					t.Fatal(err)
				}
			case <-time.After(300 * time.Millisecond):
				quiet = true
			}
		}
		if err := ch.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
