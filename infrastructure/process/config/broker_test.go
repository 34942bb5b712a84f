package config_test

import (
	"strings"
	"testing"

	"feedbox/infrastructure/process/config"
)

// TestBrokers: the variables of the broker that is chosen are checked, those of others are not
// looked at.
func TestBrokers(t *testing.T) {
	for _, c := range []struct{ environ, fault string }{
		{"FEEDBOX_BROKER=rabbitmq", "FEEDBOX_RABBITMQ_URL is required"},
		{"FEEDBOX_BROKER=rabbitmq FEEDBOX_RABBITMQ_URL=http://h", "FEEDBOX_RABBITMQ_URL is not an amqp or amqps URL"},
		{"FEEDBOX_BROKER=rabbitmq FEEDBOX_RABBITMQ_URL=amqp://u:p@h:5672/v", ""},
		{"FEEDBOX_BROKER=sqs", "FEEDBOX_SQS_QUEUE_URL is required"},
		{"FEEDBOX_BROKER=sqs FEEDBOX_SQS_QUEUE_URL=https://sqs.eu-west-1.amazonaws.com/1/plain", "is not the URL of a FIFO queue"},
		{"FEEDBOX_BROKER=sqs FEEDBOX_SQS_QUEUE_URL=https://sqs.eu-west-1.amazonaws.com/1/orders.fifo", ""},
		{"FEEDBOX_BROKER=kafka", "FEEDBOX_BROKER"},
	} {
		environ := append(strings.Fields(c.environ), "FEEDBOX_COSMOS_ENDPOINT=https://a.example", "FEEDBOX_COSMOS_KEY=a2V5")
		relay, err := config.LoadRelay(environ)
		switch {
		case c.fault == "" && err != nil, c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
			t.Errorf("%s: got %v, want %q", c.environ, err, c.fault)
		case c.fault == "" && !relay.HasBroker():
			t.Errorf("%s: no broker", c.environ)
		}
	}
}

// Commands that only read need no broker. A broker that is configured wrongly is reported to
// them too.
func TestWithoutBrokerForgivesAMissingBroker(t *testing.T) {
	for _, c := range []struct{ environ, fault string }{
		{"FEEDBOX_BROKER=servicebus", ""},
		{"FEEDBOX_BROKER=rabbitmq", ""},
		{"FEEDBOX_BROKER=sqs", ""},
		{"FEEDBOX_SERVICEBUS_CONNECTION_STRING=junk", "FEEDBOX_SERVICEBUS_CONNECTION_STRING has no Endpoint"},
		{"FEEDBOX_BROKER=rabbitmq FEEDBOX_RABBITMQ_URL=http://h", "FEEDBOX_RABBITMQ_URL is not an amqp or amqps URL"},
		{"FEEDBOX_BROKER=sqs FEEDBOX_SQS_QUEUE_URL=https://h/plain", "is not the URL of a FIFO queue"},
		{"FEEDBOX_BROKER=sqs FEEDBOX_RELAY_MAX_ITEMS=many", "FEEDBOX_RELAY_MAX_ITEMS"},
	} {
		environ := append(strings.Fields(c.environ), "FEEDBOX_COSMOS_ENDPOINT=https://a.example", "FEEDBOX_COSMOS_KEY=a2V5")
		relay, err := config.LoadRelay(environ)
		switch err := config.WithoutBroker(err); {
		case c.fault == "" && (err != nil || relay.HasBroker()), c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
			t.Errorf("%s: got %v, want %q", c.environ, err, c.fault)
		}
	}
}
