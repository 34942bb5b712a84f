package doctor_test

import (
	"context"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/infrastructure/broker/rabbitmq"
	"feedbox/infrastructure/broker/rabbitmq/doctor"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/tests/servers"
)

// examine returns the findings of an exchange.
func examine(t *testing.T, url, exchange string, groups ...string) []operator.Finding {
	t.Helper()
	return examineAs(t, config.RabbitMQ{Exchange: exchange}, url, groups...)
}

func examineAs(t *testing.T, cfg config.RabbitMQ, url string, groups ...string) (found []operator.Finding) {
	t.Helper()
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.URL.UnmarshalText([]byte(url)); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	b := doctor.New(cfg, client, groups...)
	b.Examine(func(e operator.Examination) bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for _, f := range e(ctx) {
			found = append(found, f)
			if f.Status == operator.FindingFailed {
				return false
			}
		}
		return true
	}, "", time.Minute)
	return found
}

func TestExamineReportsHowToFixTheExchange(t *testing.T) {
	if found := examine(t, "amqp://u:p@127.0.0.1:1/", "orders"); len(found) != 2 || !strings.Contains(found[1].Next, "no response") {
		t.Errorf("no broker: %+v", found)
	}
	server := servers.StartRabbitMQ(t)
	if found := examine(t, server.URL, "orders"); len(found) != 2 || !strings.Contains(found[1].Next, "declare the exchange") {
		t.Errorf("no exchange: %+v", found)
	}
	if found := examine(t, strings.Replace(server.URL, "guest:guest", "guest:wrong", 1), "orders"); len(found) != 2 || !strings.Contains(found[1].Next, "check user, password") {
		t.Errorf("wrong password: %+v", found)
	}
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if err := rabbitmq.Declare(t.Context(), client, "orders", rabbitmq.Group{Name: "billing", Queues: 2}); err != nil {
		t.Fatal(err)
	}
	found := examine(t, server.URL, "orders", "billing:2")
	if len(found) != 4 || found[3].Status != operator.FindingOK || !strings.Contains(found[3].Detail, "2 queues, 0 of them with a consumer, 0 messages wait") {
		t.Errorf("a group: %+v", found)
	}
	if found = examine(t, server.URL, "orders", "billing:1"); len(found) != 4 || found[3].Status != operator.FindingFailed || !strings.Contains(found[3].Detail, "billing.1") {
		t.Errorf("a group with more queues than its consumers receive from: %+v", found)
	}
	// Its other queue still takes events, so nothing else shows the loss.
	connection, err := amqp.Dial(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	channel, err := connection.Channel()
	if err == nil {
		_, err = channel.QueueDelete("billing.1", false, false, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	if found = examine(t, server.URL, "orders", "billing:2"); len(found) != 4 || found[3].Status != operator.FindingFailed || !strings.Contains(found[3].Detail, "billing.1") {
		t.Errorf("a group without one of its queues: %+v", found)
	}
	if found := examine(t, server.URL, "orders"); len(found) != 3 || found[1].Status != operator.FindingOK {
		t.Errorf("all well: %+v", found)
	}
	if found := examineAs(t, config.RabbitMQ{Exchange: "orders", PackKeys: true}, server.URL); len(found) != 4 || !strings.Contains(found[3].Detail, "each consumer must read them") {
		t.Errorf("packed messages: %+v", found)
	}
}

// Without its dead-letter queue a consumer cannot dead-letter an event, so later events of its key wait.
func TestExamineReportsAMissingDeadLetterQueue(t *testing.T) {
	server := servers.StartRabbitMQ(t)
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if err := rabbitmq.Declare(t.Context(), client, "orders", rabbitmq.Group{Name: "billing", Queues: 2}); err != nil {
		t.Fatal(err)
	}
	connection, err := amqp.Dial(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	channel, err := connection.Channel()
	if err == nil {
		_, err = channel.QueueDelete("billing.dead-letters", false, false, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	found := examine(t, server.URL, "orders", "billing:2")
	if last := found[len(found)-1]; last.Status != operator.FindingFailed || !strings.Contains(last.Detail, "billing.dead-letters") || last.Next != "call rabbitmq.Declare for the group" {
		t.Errorf("a group without its dead-letter queue: %+v", last)
	}
	if err := rabbitmq.Declare(t.Context(), client, "orders", rabbitmq.Group{Name: "billing", Queues: 2}); err != nil {
		t.Fatal(err)
	}
	found = examine(t, server.URL, "orders", "billing:2")
	if last := found[len(found)-1]; last.Status == operator.FindingFailed {
		t.Errorf("after the advice: %+v", last)
	}
}
