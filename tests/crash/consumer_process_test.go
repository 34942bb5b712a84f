//go:build faults

package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/rabbitmq"
	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/broker/sqs"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/cosmosinbox"
	"feedbox/infrastructure/store/cosmos/parked"
	"feedbox/tests/servers"
	"feedbox/tests/testkit"
)

// consumerPlan is the input of a consumer's process.
type consumerPlan struct {
	Endpoints testkit.Endpoints
	Broker    string
	URL       string // of RabbitMQ or of the emulator of SQS
	Queue     string // URL of the queue of SQS
	Seed      uint64
	Cured     string // folder with a file for each event whose cause the operator has removed
}

// isPoison reports whether an event is refused until it is cured.
func (p *consumerPlan) isPoison(event string) bool {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, p.Seed, event)
	return rand.New(rand.NewPCG(h.Sum64(), 0)).IntN(100) == 0
}

func (p *consumerPlan) refused(keys int) (n int) {
	for key := range keys {
		for sequence := range int64(eachKey) {
			if p.isPoison(eventID(fmt.Sprint("key-", key), sequence+1)) {
				n++
			}
		}
	}
	return n
}

func (p *consumerPlan) parked(t testing.TB) *parked.Store {
	t.Helper()
	store, err := parked.NewStore(p.Endpoints.ContainerClient(t, p.Endpoints.Parked))
	if err != nil {
		t.Fatal(err)
	}
	of, err := store.Of("mail")
	if err != nil {
		t.Fatal(err)
	}
	return of
}

func (p *consumerPlan) start(t *testing.T, n int) *testkit.Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return testkit.Start(t, fmt.Sprint("consumer-", n), self, []string{"FEEDBOX_TEST_CONSUMER=" + string(input)}, "-test.run=^TestConsumerProcess$")
}

// consumerGroup has more queues than consumers, so that a survivor owns queues of the killed one.
var consumerGroup = rabbitmq.Group{Name: "mail", Queues: 4}

const consumerExchange = "contacts"

func (p *consumerPlan) sqs() *awssqs.Client {
	return awssqs.New(awssqs.Options{BaseEndpoint: &p.URL, Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
}

// startBroker starts the broker unless it is that of feedbox-dev, and returns a publisher to it.
func (p *consumerPlan) startBroker(t testing.TB) (publisher relay.Publisher) {
	t.Helper()
	var err error
	switch p.Broker {
	case "rabbitmq":
		p.URL = servers.StartRabbitMQ(t).URL
		client, failed := rabbitmq.NewClient(rabbitmq.Config{URL: p.URL})
		if failed == nil {
			t.Cleanup(func() { _ = client.Close() })
			failed = rabbitmq.Declare(t.Context(), client, consumerExchange, consumerGroup)
		}
		if err = failed; err == nil {
			publisher, err = rabbitmq.NewPublisher(client, consumerExchange, &rabbitmq.PublisherOptions{PackKeys: p.Seed%2 == 1}) // the default seed does
		}
	case "sqs":
		p.URL = servers.StartSQS(t)
		if p.Queue, err = sqs.Declare(t.Context(), p.sqs(), "mail.fifo"); err == nil {
			publisher, err = sqs.NewPublisher(p.sqs(), p.Queue, nil)
		}
	default:
		client, failed := servicebus.NewClient(servicebus.ClientConfig{ConnectionString: p.Endpoints.ServiceBusConnectionString})
		if err = failed; err == nil {
			t.Cleanup(func() { _ = client.Close(context.Background()) })
			publisher, err = servicebus.NewPublisher(client, p.Endpoints.Topic, nil)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return publisher
}

// pacedPublisher waits while a queue is long, because moto reads all messages of a queue for each that is sent,
// received or deleted.
type pacedPublisher struct {
	relay.Publisher
	client *awssqs.Client
	queue  string
}

func (p *pacedPublisher) Publish(ctx context.Context, groups []relay.Group) error {
	for {
		names := []types.QueueAttributeName{types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible}
		reply, err := p.client.GetQueueAttributes(ctx, &awssqs.GetQueueAttributesInput{QueueUrl: &p.queue, AttributeNames: names})
		if err != nil {
			return err
		}
		length := 0
		for _, name := range names {
			n, err := strconv.Atoi(reply.Attributes[string(name)])
			if err != nil {
				return err
			}
			length += n
		}
		if length < 500 {
			return p.Publisher.Publish(ctx, groups)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// kit returns a consumer of the broker.
func (p *consumerPlan) kit(handler consumer.Handler, o consumer.Options) (servers.Consumer, error) {
	switch p.Broker {
	case "rabbitmq":
		client, err := rabbitmq.NewClient(rabbitmq.Config{URL: p.URL})
		if err != nil {
			return nil, err
		}
		return rabbitmq.NewConsumer(client, consumerGroup, handler, &rabbitmq.ConsumerOptions{Options: o})
	case "sqs":
		// The keys of a killed consumer wait for Visibility.
		return sqs.NewConsumer(p.sqs(), p.Queue, handler, &sqs.ConsumerOptions{Options: o, Visibility: 5 * time.Second, Wait: time.Second})
	default:
		return subscriber.NewSessionProcessor(servicebus.ClientConfig{ConnectionString: p.Endpoints.ServiceBusConnectionString}, subscriber.Subscription(p.Endpoints.Topic, p.Endpoints.Subscription), handler, &subscriber.SessionOptions{
			Sessions: o.Concurrency, Inbox: o.Inbox, Park: o.Park, ParkedPoll: o.ParkedPoll, Attempts: o.Attempts, RetryDelay: o.RetryDelay, RetryDelayMax: o.RetryDelayMax, Observe: o.Observe,
		})
	}
}

// TestConsumerProcess is a consumer, in a process of its own.
func TestConsumerProcess(t *testing.T) {
	input := os.Getenv("FEEDBOX_TEST_CONSUMER")
	if input == "" {
		return // not started by the test
	}
	var p consumerPlan
	if err := json.Unmarshal([]byte(input), &p); err != nil {
		t.Fatal(err)
	}
	data := p.Endpoints.ContainerClient(t, p.Endpoints.Container)
	inbox, err := cosmosinbox.New(data, "mail", nil)
	if err != nil {
		t.Fatal(err)
	}
	handler := func(ctx context.Context, e *consumer.Event) error {
		if _, err := os.Stat(filepath.Join(p.Cured, e.ID)); err != nil && p.isPoison(e.ID) {
			if e.Sequence%2 == 0 {
				return consumer.DeadLetter("poison", errors.New("cannot be handled yet"))
			}
			return errors.New("cannot be handled yet")
		}
		return journal(ctx, data, inbox, e)
	}
	kit, err := p.kit(handler, consumer.Options{
		Inbox: inbox, Park: p.parked(t), ParkedPoll: time.Second, Attempts: 2, RetryDelay: 20 * time.Millisecond, RetryDelayMax: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	if err := kit.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// entries is the document of a journal.
type entries struct {
	ID           string   `json:"id"`
	PartitionKey string   `json:"partitionKey"`
	Events       []string `json:"events"`
}

func readJournal(ctx context.Context, data *azcosmos.ContainerClient, key string) (entries, azcore.ETag, error) {
	d := entries{ID: "journal", PartitionKey: key}
	reply, err := data.ReadItem(ctx, azcosmos.NewPartitionKeyString(key), d.ID, nil)
	if missing, ok := errors.AsType[*azcore.ResponseError](err); ok && missing.StatusCode == http.StatusNotFound {
		return d, "", nil
	}
	if err == nil {
		err = json.Unmarshal(reply.Value, &d)
	}
	return d, reply.ETag, err
}

// journal appends an event to the journal of its key, in one batch with the mark of the inbox.
func journal(ctx context.Context, data *azcosmos.ContainerClient, inbox *cosmosinbox.Inbox, e *consumer.Event) error {
	batch, err := inbox.Batch(ctx, e)
	if err != nil {
		return err
	}
	d, etag, err := readJournal(ctx, data, e.Key)
	if err != nil {
		return err
	}
	d.Events = append(d.Events, e.ID)
	body, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if etag == "" {
		batch.CreateItem(body, nil)
	} else {
		batch.ReplaceItem(d.ID, body, &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &etag})
	}
	return batch.Execute(ctx)
}
