package pairs

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"feedbox/infrastructure/broker/rabbitmq"
	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/broker/sqs"
	"feedbox/infrastructure/emulator/busemu"
	"feedbox/tests/servers"
)

// broker receives the events of one pair.
type broker struct {
	env []string // variables for the relay
	// orders has the variables for the order service of tests/adopter. Without any, the
	// service starts our emulator.
	orders []string
	// management is the address of the management API for the doctor, if it is not the default.
	management string
	// repeats reports whether the broker delivers repeated messages.
	repeats bool
	// consume runs a consumer that writes into l.
	consume func(t *testing.T, l *servers.Ledger) (stop func())
	// kill kills the server with -9 and restarts it. It is nil for our emulator, which
	// tests/crash kills, and for moto, because it keeps its queues in memory.
	kill func(t *testing.T)
}

// brokerKind creates brokers.
type brokerKind struct {
	name string
	open func(t *testing.T) *broker
	// store is the only store of its pairs; "": all.
	store string
}

var brokers = []brokerKind{
	{"servicebus", openServiceBus, ""},
	{"rabbitmq", openRabbitMQ, ""},
	{"sqs", openSQS, ""},
	{"sns", openSNS, "postgres"}, // because publisher and consumer kit are those of sqs
}

func openServiceBus(t *testing.T) *broker {
	server := busemu.StartT(t)
	must(t, server.CreateTopic(t.Context(), busemu.Topic{
		Name: "contacts", RequiresDuplicateDetection: true, Subscriptions: []busemu.Subscription{{Name: "billing", RequiresSession: true}},
	}))
	return &broker{
		env: []string{"FEEDBOX_BROKER=servicebus", "FEEDBOX_SERVICEBUS_CONNECTION_STRING=" + server.ConnectionString()}, management: server.AdminURL(),
		consume: func(t *testing.T, l *servers.Ledger) func() {
			o := l.Options()
			c, err := subscriber.NewSessionProcessor(servicebus.ClientConfig{ConnectionString: server.ConnectionString()}, subscriber.Subscription("contacts", "billing"), l.Handle,
				&subscriber.SessionOptions{Inbox: o.Inbox, Observe: o.Observe, RetryDelay: o.RetryDelay})
			return servers.Consume(t, c, err)
		},
	}
}

var (
	rabbitServer = shared[*servers.RabbitMQ]{start: servers.StartRabbitMQ}
	sqsServer    = shared[string]{start: servers.StartSQS}
	names        atomic.Int64 // of exchanges and queues so far
)

func openRabbitMQ(t *testing.T) *broker { return inRabbitMQ(t, rabbitServer.get(t)) }

func inRabbitMQ(t *testing.T, server *servers.RabbitMQ) *broker {
	t.Helper()
	connect := func(t *testing.T) *rabbitmq.Client {
		t.Helper()
		client, err := rabbitmq.NewClient(rabbitmq.Config{URL: server.URL})
		must(t, err)
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	number := names.Add(1)
	exchange := fmt.Sprint("contacts-", number)
	group := rabbitmq.Group{Name: exchange + "-billing", Queues: 4}
	must(t, rabbitmq.Declare(t.Context(), connect(t), exchange, group))
	return &broker{
		env: []string{"FEEDBOX_BROKER=rabbitmq", "FEEDBOX_RABBITMQ_URL=" + server.URL, "FEEDBOX_RABBITMQ_EXCHANGE=" + exchange, fmt.Sprint("FEEDBOX_RABBITMQ_PACK_KEYS=", number%2 == 1)}, repeats: true, // every second relay packs
		orders: []string{"ORDERS_TEST_RABBITMQ=" + server.URL},
		consume: func(t *testing.T, l *servers.Ledger) func() {
			c, err := rabbitmq.NewConsumer(connect(t), group, l.Handle, &rabbitmq.ConsumerOptions{Options: l.Options()})
			return servers.Consume(t, c, err)
		},
		kill: func(t *testing.T) {
			server.Kill()
			server.Start(t)
		},
	}
}

// inAWS has the variables of processes that use moto.
var inAWS = []string{"AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b"}

func openSQS(t *testing.T) *broker {
	endpoint := sqsServer.get(t)
	client := awssqs.New(awssqs.Options{BaseEndpoint: &endpoint, Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
	queue, err := sqs.Declare(t.Context(), client, fmt.Sprint("contacts-", names.Add(1), ".fifo"))
	must(t, err)
	return &broker{
		env:     append([]string{"FEEDBOX_BROKER=sqs", "FEEDBOX_SQS_QUEUE_URL=" + queue, "FEEDBOX_SQS_ENDPOINT=" + endpoint, "FEEDBOX_SQS_REGION=eu-west-1"}, inAWS...),
		orders:  []string{"ORDERS_TEST_SQS=" + endpoint},
		consume: fromSQS(client, queue),
	}
}

// openSNS makes a topic with two queues. The events of the first one are judged.
func openSNS(t *testing.T) *broker {
	endpoint := sqsServer.get(t)
	credential := credentials.NewStaticCredentialsProvider("a", "b", "")
	client := awssqs.New(awssqs.Options{BaseEndpoint: &endpoint, Region: "eu-west-1", Credentials: credential})
	topics := sns.New(sns.Options{BaseEndpoint: &endpoint, Region: "eu-west-1", Credentials: credential})
	name := fmt.Sprint("contacts-", names.Add(1))
	topicARN, queues, err := sqs.DeclareTopic(t.Context(), topics, client, name+".fifo", name+"-billing.fifo", name+"-shipping.fifo")
	must(t, err)
	return &broker{
		env:     append([]string{"FEEDBOX_BROKER=sns", "FEEDBOX_SNS_TOPIC_ARN=" + topicARN, "FEEDBOX_SNS_ENDPOINT=" + endpoint}, inAWS...),
		orders:  []string{"ORDERS_TEST_SQS=" + endpoint}, // the order service has no port of SNS
		consume: fromSQS(client, queues[0]),
	}
}

func fromSQS(client *awssqs.Client, queue string) func(t *testing.T, l *servers.Ledger) func() {
	return func(t *testing.T, l *servers.Ledger) func() {
		t.Helper()
		c, err := sqs.NewConsumer(client, queue, l.Handle, &sqs.ConsumerOptions{Options: l.Options(), Visibility: 5 * time.Second})
		return servers.Consume(t, c, err)
	}
}
