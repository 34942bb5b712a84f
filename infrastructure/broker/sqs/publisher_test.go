package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/sqs"
	"feedbox/infrastructure/consumer"
	"feedbox/tests/servers"
)

func groups(keys, each int) []relay.Group {
	all := make([]relay.Group, keys)
	for k := range all {
		all[k].Key = fmt.Sprintf("key %d", k)
		for n := range each {
			all[k].Messages = append(all[k].Messages, relay.Message{
				ID: fmt.Sprintf("%d-%d", k, n), Key: all[k].Key, Action: "Happened", Body: []byte(`{"a":1}`), Sequence: int64(n + 1), CreatedAt: "2026-01-02T03:04:05Z",
			})
		}
	}
	return all
}

// transport counts requests, and replaces the server if respond is set.
type transport struct {
	requests atomic.Int64
	respond  atomic.Pointer[func(*http.Request) (*http.Response, error)]
}

func (tr *transport) Do(r *http.Request) (*http.Response, error) {
	tr.requests.Add(1)
	if f := tr.respond.Load(); f != nil {
		return (*f)(r)
	}
	return http.DefaultClient.Do(r)
}

func newClient(endpoint string, tr *transport) *awssqs.Client {
	return awssqs.New(awssqs.Options{
		BaseEndpoint: &endpoint, Region: "eu-west-1", HTTPClient: tr, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
	})
}

// TestWithServer runs all tests that need a server on one, because it takes seconds to start.
func TestWithServer(t *testing.T) {
	endpoint := servers.StartSQS(t)
	t.Run("publisher", func(t *testing.T) { t.Parallel(); testPublisher(t, endpoint) })
	t.Run("consumer", func(t *testing.T) { t.Parallel(); testConsumer(t, endpoint) })
	t.Run("topic", func(t *testing.T) { t.Parallel(); testTopic(t, endpoint) })
}

func testPublisher(t *testing.T, endpoint string) {
	tr := &transport{}
	client := newClient(endpoint, tr)
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute) // a busy machine is slow
	defer stop()
	made, err := client.CreateQueue(ctx, &awssqs.CreateQueueInput{QueueName: aws.String("orders.fifo"), Attributes: map[string]string{"FifoQueue": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	publisher := func(queue string, o *sqs.PublisherOptions) *sqs.Publisher {
		p, err := sqs.NewPublisher(client, queue, o)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}

	t.Run("all messages arrive once in the order of their keys", func(t *testing.T) {
		tr.requests.Store(0)
		p := publisher(*made.QueueUrl, &sqs.PublisherOptions{SendTimeout: time.Minute})
		for range 2 { // SQS drops the repeat by its deduplication ids
			publishAll(t, p, groups(30, 4))
		}
		if n := tr.requests.Load(); n < 24 || n > 60 {
			t.Errorf("%d requests for 240 messages of 30 keys", n)
		}
		next, total := map[string]int64{}, 0
		for {
			got, err := client.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{QueueUrl: made.QueueUrl, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}})
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Messages) == 0 {
				break
			}
			var deleted []types.DeleteMessageBatchRequestEntry
			for _, m := range got.Messages {
				key := *m.MessageAttributes[consumer.PropertyKey].StringValue
				sequence, _ := strconv.ParseInt(*m.MessageAttributes[consumer.PropertySequence].StringValue, 10, 64)
				if sequence != next[key]+1 {
					t.Errorf("%s: sequence %d after %d", key, sequence, next[key])
				}
				if m.Attributes["MessageGroupId"] != sqs.GroupID(key) || *m.Body != `{"a":1}` {
					t.Errorf("message %+v", m)
				}
				next[key] = sequence
				total++
				deleted = append(deleted, types.DeleteMessageBatchRequestEntry{Id: m.MessageId, ReceiptHandle: m.ReceiptHandle})
			}
			if _, err := client.DeleteMessageBatch(ctx, &awssqs.DeleteMessageBatchInput{QueueUrl: made.QueueUrl, Entries: deleted}); err != nil {
				t.Fatal(err)
			}
		}
		if total != 120 {
			t.Errorf("%d messages, want 120", total)
		}
	})

	t.Run("missing queue blocks", func(t *testing.T) {
		err := publisher(*made.QueueUrl+"x.fifo", nil).Publish(ctx, groups(2, 1))
		want(t, err, []int{0, 1}, relay.Blocked, "queue_not_found")
	})

	t.Run("invalid messages fail only their keys", func(t *testing.T) {
		bad := groups(4, 2)
		bad[1].Messages[1].Body = []byte("\x01")
		bad[3].Messages[1].Body = []byte(strings.Repeat("x", 3000))
		failed, ok := errors.AsType[*relay.PublishError](publisher(*made.QueueUrl, &sqs.PublisherOptions{MaxRequestBytes: 2000}).Publish(ctx, bad))
		if !ok || len(failed.Keys) != 2 || failed.Keys[0].Group != 1 || failed.Keys[0].Sent != 1 || relay.ReasonOf(failed.Keys[0].Err) != "invalid_characters" ||
			failed.Keys[1].Group != 3 || failed.Keys[1].Sent != 1 || relay.ReasonOf(failed.Keys[1].Err) != "too_large" {
			t.Errorf("got %v", failed)
		}
	})

	t.Run("canceled context sends nothing", func(t *testing.T) {
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		tr.requests.Store(0)
		if err := publisher(*made.QueueUrl, nil).Publish(canceled, groups(2, 1)); !errors.Is(err, context.Canceled) || tr.requests.Load() != 0 {
			t.Errorf("got %v after %d requests", err, tr.requests.Load())
		}
	})
}

func want(t *testing.T, err error, keys []int, class relay.Class, reason string) {
	t.Helper()
	failed, ok := errors.AsType[*relay.PublishError](err)
	if !ok || len(failed.Keys) != len(keys) {
		t.Fatalf("got %v, want the groups %v to fail", err, keys)
	}
	for i, k := range failed.Keys {
		if k.Group != keys[i] || k.Sent != 0 || relay.ClassOf(k.Err) != class || relay.ReasonOf(k.Err) != reason {
			t.Errorf("group %d: after %d messages %v, want %v: %s", k.Group, k.Sent, k.Err, class, reason)
		}
	}
}
