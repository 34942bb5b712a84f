package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/sqs"
	"feedbox/infrastructure/consumer"
	"feedbox/tests/servers"
	"feedbox/tests/testkit"
)

func topicClient(endpoint string, h sns.HTTPClient) *sns.Client {
	return sns.New(sns.Options{BaseEndpoint: &endpoint, Region: "eu-west-1", HTTPClient: h, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
}

func testTopic(t *testing.T, endpoint string) {
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute) // a busy machine is slow
	t.Cleanup(stop)
	topics, queues := topicClient(endpoint, http.DefaultClient), client(endpoint, http.DefaultTransport)
	declare := func(t *testing.T, name string, groups ...string) (topicARN string, urls []string) {
		t.Helper()
		for range 2 { // services declare it at each start
			var err error
			if topicARN, urls, err = sqs.DeclareTopic(ctx, topics, queues, name, groups...); err != nil {
				t.Fatal(err)
			}
		}
		return topicARN, urls
	}
	publisher := func(t *testing.T, topicARN string) *sqs.Publisher {
		t.Helper()
		p, err := sqs.NewTopicPublisher(topics, topicARN, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	consume := func(t *testing.T, url string, handler consumer.Handler, o consumer.Options) (stop func()) {
		t.Helper()
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
		c, err := sqs.NewConsumer(queues, url, handler, &sqs.ConsumerOptions{Options: o, Wait: time.Second})
		return servers.Consume(t, c, err)
	}

	t.Run("each queue of a topic receives every event once and in order", func(t *testing.T) {
		t.Parallel()
		topicARN, urls := declare(t, "fan-out.fifo", "billing.fifo", "shipping.fifo")
		all := events(20, 5)
		for range 2 {
			publishAll(t, publisher(t, topicARN), all)
		}
		ledgers := make([]servers.Ledger, len(urls))
		for i, url := range urls {
			consume(t, url, ledgers[i].Handle, ledgers[i].Options())
		}
		for i := range ledgers {
			ledgers[i].Judge(t, all)
			if _, repeats := ledgers[i].Messages(); repeats > 0 {
				t.Errorf("%s received %d events twice", urls[i], repeats)
			}
		}
	})

	t.Run("dead letters are those of one queue", func(t *testing.T) {
		t.Parallel()
		topicARN, urls := declare(t, "letters-topic.fifo", "letters-one.fifo", "letters-two.fifo")
		var mu sync.Mutex
		var others []string
		consume(t, urls[1], func(_ context.Context, e *consumer.Event) error {
			mu.Lock()
			defer mu.Unlock()
			others = append(others, e.ID)
			return nil
		}, consumer.Options{})
		servers.TestDeadLetters(t, servers.Letters{
			Port: sqs.NewTopicDeadLetters(topics, queues, topicARN), Doctor: doctor{}, Consumer: "letters-one.fifo",
			Publish: func(t *testing.T, all []relay.Group) {
				t.Helper()
				publishAll(t, publisher(t, topicARN), all)
			},
			Start: func(t *testing.T, handler consumer.Handler, inbox consumer.Inbox) func() {
				return consume(t, urls[0], handler, consumer.Options{Inbox: inbox})
			},
			Others: func() []string {
				mu.Lock()
				defer mu.Unlock()
				return append([]string(nil), others...)
			},
			Eventually: func(t *testing.T, what string, ok func() bool) { testkit.Eventually(t, time.Minute, what, ok) },
		})
	})

	t.Run("missing topic blocks", func(t *testing.T) {
		want(t, publisher(t, "arn:aws:sns:eu-west-1:123456789012:none.fifo").Publish(ctx, groups(2, 1)), []int{0, 1}, relay.Blocked, "topic_not_found")
	})

	// SNS would discard the events for this queue without an error to anyone.
	t.Run("queue with a policy that does not permit the topic is refused", func(t *testing.T) {
		_, urls := declare(t, "first.fifo", "shared.fifo")
		_, _, err := sqs.DeclareTopic(ctx, topics, queues, "second.fifo", "shared.fifo")
		if err == nil || !strings.Contains(err.Error(), "the policy of shared.fifo does not name the topic") {
			t.Errorf("error %v", err)
		}
		for _, url := range []string{urls[0], strings.Replace(urls[0], ".fifo", "-dead-letters.fifo", 1)} {
			if _, err := queues.SetQueueAttributes(ctx, &awssqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{
				"Policy": `{"Statement": [{"Condition": {"ArnLike": {"aws:SourceArn": "arn:aws:sns:eu-west-1:123456789012:second.fifo"}}}]}`,
			}}); err != nil {
				t.Fatal(err)
			}
		}
		declare(t, "second.fifo", "shared.fifo")
	})
}

// newTopicPublisherTo returns a publisher to a topic with this limit. codes are those of the errors of
// events by id; "-" leaves the event out of the response. sent is called with each request.
func newTopicPublisherTo(t *testing.T, limit string, codes map[string]string, sent func(r request)) *sqs.Publisher {
	t.Helper()
	tr := &transport{}
	answer := func(r *http.Request) (*http.Response, error) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		form, err := url.ParseQuery(string(text))
		if err != nil {
			return nil, err
		}
		var succeeded, failed, attributes strings.Builder
		var got request
		for n := 1; form.Get("Action") == "PublishBatch"; n++ {
			e := "PublishBatchRequestEntries.member." + strconv.Itoa(n) + "."
			if !form.Has(e + "Id") {
				break
			}
			one := entry{form.Get(e + "Id"), form.Get(e + "MessageDeduplicationId"), form.Get(e + "Message")}
			got.Entries = append(got.Entries, one)
			switch code := codes[one.MessageDeduplicationID]; code {
			case "":
				fmt.Fprintf(&succeeded, "<member><Id>%s</Id><MessageId>m</MessageId></member>", one.ID)
			case "-":
			default:
				fmt.Fprintf(&failed, "<member><Id>%s</Id><Code>%s</Code><SenderFault>false</SenderFault></member>", one.ID, code)
			}
		}
		sent(got)
		if limit != "" {
			attributes.WriteString("<entry><key>MaximumMessageSize</key><value>" + limit + "</value></entry>")
		}
		body := fmt.Sprintf(`<%[1]sResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><%[1]sResult><Successful>%[2]s</Successful><Failed>%[3]s</Failed><Attributes>%[4]s</Attributes></%[1]sResult></%[1]sResponse>`,
			form.Get("Action"), succeeded.String(), failed.String(), attributes.String())
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/xml"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
	tr.respond.Store(&answer)
	p, err := sqs.NewTopicPublisher(topicClient("http://sns.example", tr), "arn:aws:sns:eu-west-1:1:q.fifo", nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPartialFailureOfATopicBlocksOnlyItsKeys(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	codes := map[string]string{"1-1": "Throttled", "2-0": "InvalidParameter", "3-1": "-", "4-0": "KMSAccessDenied"}
	p := newTopicPublisherTo(t, "", codes, func(r request) {
		mu.Lock()
		defer mu.Unlock()
		for _, e := range r.Entries {
			seen[e.MessageDeduplicationID]++
		}
	})
	failed, ok := errors.AsType[*relay.PublishError](p.Publish(t.Context(), groups(6, 3)))
	if !ok || len(failed.Keys) != 4 {
		t.Fatalf("got %v", failed)
	}
	for i, want := range []struct {
		group, sent int
		class       relay.Class
		reason      string
	}{{1, 1, relay.Outage, "throttled"}, {2, 0, relay.Refused, "malformed"}, {3, 1, relay.Outage, "no_answer"}, {4, 0, relay.Blocked, "key_denied"}} {
		if k := failed.Keys[i]; k.Group != want.group || k.Sent != want.sent || relay.ClassOf(k.Err) != want.class || relay.ReasonOf(k.Err) != want.reason {
			t.Errorf("got group %d, sent %d, %v; want %v", k.Group, k.Sent, k.Err, want)
		}
	}
	for _, never := range []string{"1-2", "2-1", "3-2", "4-1"} {
		if seen[never] > 0 {
			t.Errorf("%s was sent after a failed message of its key", never)
		}
	}
}

// A topic has one limit for a message and for all messages of a request. SNS does not return the default.
func TestSizeLimitIsThatOfTheTopic(t *testing.T) {
	const kib = 1 << 10
	for _, c := range []struct {
		size    int // of each of five messages
		limit   string
		largest int // number of messages in the largest request
		refused bool
	}{
		{size: 60 * kib, largest: 4},
		{size: 60 * kib, limit: "65536", largest: 1},
		{size: 60 * kib, limit: "1048576", largest: 5},
		{size: 300 * kib, refused: true},
		{size: 300 * kib, limit: "1048576", largest: 3},
	} {
		var mu sync.Mutex
		largest := 0
		p := newTopicPublisherTo(t, c.limit, nil, func(r request) {
			mu.Lock()
			defer mu.Unlock()
			largest = max(largest, len(r.Entries))
		})
		err := p.Publish(t.Context(), sized(c.size))
		if c.refused {
			want(t, err, []int{0, 1, 2, 3, 4}, relay.Refused, "too_large")
		} else if err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if largest != c.largest {
			t.Errorf("%+v: at most %d messages in a request", c, largest)
		}
	}
}
