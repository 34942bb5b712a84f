package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/infrastructure/broker/sqs"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/operator"
	"feedbox/tests/servers"
	"feedbox/tests/testenv"
	"feedbox/tests/testkit"
)

// doctor knows the duplicate window of SQS.
type doctor struct{ operator.BrokerDoctor }

func (doctor) Window(context.Context, string) operator.Window {
	return operator.Window{Length: sqs.Window}
}

// queue is a queue with its consumers.
type queue struct {
	client *awssqs.Client
	url    string

	broken   atomic.Bool  // requests of consumers fail
	failed   atomic.Int64 // while broken
	extended atomic.Int64 // requests to change the visibility
}

func newQueue(t *testing.T, endpoint, name string) *queue {
	t.Helper()
	q := &queue{client: client(endpoint, http.DefaultTransport)}
	var err error
	if q.url, err = sqs.Declare(t.Context(), q.client, name+".fifo"); err != nil {
		t.Fatal(err)
	}
	return q
}

func client(endpoint string, transport http.RoundTripper) *awssqs.Client {
	return awssqs.New(awssqs.Options{
		BaseEndpoint: &endpoint, Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), HTTPClient: &http.Client{Transport: transport},
	})
}

// RoundTrip fails requests while broken is set, in turn before and after the server has handled them.
func (q *queue) RoundTrip(r *http.Request) (*http.Response, error) {
	if q.broken.Load() && q.failed.Add(1)%2 == 0 {
		return nil, errors.New("cut before the request")
	}
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "ChangeMessageVisibilityBatch") {
		q.extended.Add(1)
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && q.broken.Load() && !strings.HasSuffix(r.Header.Get("X-Amz-Target"), "ReceiveMessage") {
		_ = response.Body.Close()
		return nil, errors.New("cut after the request")
	}
	return response, err
}

// cutter is the network of a process, which fails after a crash.
type cutter struct {
	http.Transport
	cut atomic.Bool
}

func (c *cutter) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.cut.Load() {
		return nil, errors.New("the process has crashed")
	}
	return c.Transport.RoundTrip(r)
}

func (q *queue) start(t *testing.T, endpoint string, handler consumer.Handler, o sqs.ConsumerOptions) (stop func()) {
	t.Helper()
	o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	c, err := sqs.NewConsumer(client(endpoint, q), q.url, handler, &o)
	return servers.Consume(t, c, err)
}

func (q *queue) publish(t *testing.T, all []relay.Group) {
	t.Helper()
	p, err := sqs.NewPublisher(q.client, q.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	publishAll(t, p, all)
}

// publishAll publishes like the relay, which repeats what an outage interrupts. A connection to moto can
// end while an answer is read.
func publishAll(t *testing.T, p *sqs.Publisher, all []relay.Group) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := p.Publish(t.Context(), all)
		if err == nil {
			return
		}
		failed, ok := errors.AsType[*relay.PublishError](err)
		if !ok || time.Now().After(limit) || slices.ContainsFunc(failed.Keys, func(k relay.KeyError) bool { return relay.ClassOf(k.Err) != relay.Outage }) {
			t.Fatal(err)
		}
		t.Log(err)
	}
}

func events(keys, each int) []relay.Group {
	all := make([]relay.Group, keys)
	for k := range all {
		all[k].Key = fmt.Sprintf("key-%d", k)
		for n := range each {
			all[k].Messages = append(all[k].Messages, relay.Message{
				ID: fmt.Sprintf("%d-%d", k, n+1), Key: all[k].Key, Action: "Happened", Body: []byte(`{"a":1}`), Sequence: int64(n + 1), AggregateVersion: int64(n + 1),
			})
		}
	}
	return all
}

func testConsumer(t *testing.T, endpoint string) {
	t.Run("refused events park their keys in order", func(t *testing.T) {
		t.Parallel()
		q := newQueue(t, endpoint, "parks")
		servers.TestParked(t, servers.ParkedKit{
			Store: parkedtest.NewMemory(), Inbox: consumer.NewMemoryInbox(0), Publish: func(all []relay.Group) { q.publish(t, all) }, Keys: testenv.Sample(t, 4, 8),
			Start: func(o consumer.Options, handler consumer.Handler) func() {
				process := &cutter{}
				o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
				c, err := sqs.NewConsumer(client(endpoint, process), q.url, handler, &sqs.ConsumerOptions{Options: o, Visibility: 2 * time.Second, Wait: time.Second})
				stop := servers.Consume(t, c, err)
				return func() { process.cut.Store(true); stop(); process.CloseIdleConnections() }
			},
		})
	})
	// Handlers fail, consumers restart, and requests and responses are lost. Every event has one effect,
	// in the order of its key.
	t.Run("faults cause no loss, no repeat and no disorder", func(t *testing.T) {
		t.Parallel()
		q := newQueue(t, endpoint, "faults")
		var ledger servers.Ledger
		var tries atomic.Int64
		handler := func(ctx context.Context, e *consumer.Event) error {
			switch n := tries.Add(1); {
			case n%17 == 0:
				return errors.New("not now")
			case n%31 == 0:
				panic("cannot")
			}
			return ledger.Handle(ctx, e)
		}
		o := sqs.ConsumerOptions{Options: ledger.Options(), Receivers: 2, MaxInFlight: 50, Wait: time.Second, Visibility: 2 * time.Second}
		o.RetryDelay, o.RetryDelayMax, o.Attempts = 5*time.Millisecond, 20*time.Millisecond, -1
		stops := []func(){q.start(t, endpoint, handler, o), q.start(t, endpoint, handler, o)}
		all := events(20, 8)
		published := make(chan struct{})
		go func() {
			defer close(published)
			q.publish(t, all)
		}()
		for n := range 6 {
			time.Sleep(200 * time.Millisecond)
			if n%3 == 0 {
				q.broken.Store(true)
				time.Sleep(200 * time.Millisecond)
				q.broken.Store(false)
				continue
			}
			i := n % len(stops)
			stops[i]()
			stops[i] = q.start(t, endpoint, handler, o)
		}
		<-published
		ledger.Judge(t, all)
	})

	t.Run("dead letters are read, resubmitted and discarded", func(t *testing.T) {
		t.Parallel()
		q := newQueue(t, endpoint, "operators")
		servers.TestDeadLetters(t, servers.Letters{
			Port: sqs.NewDeadLetters(q.client, q.url), Doctor: doctor{}, Consumer: "operators.fifo", Publish: q.publish,
			Start: func(t *testing.T, handler consumer.Handler, inbox consumer.Inbox) func() {
				return q.start(t, endpoint, handler, sqs.ConsumerOptions{Options: consumer.Options{Inbox: inbox}, Wait: time.Second})
			},
			Eventually: func(t *testing.T, what string, ok func() bool) { testkit.Eventually(t, time.Minute, what, ok) },
		})
	})

	t.Run("failed event blocks only its key", func(t *testing.T) {
		t.Parallel()
		q := newQueue(t, endpoint, "waits")
		var ledger servers.Ledger
		var recovered atomic.Bool
		q.start(t, endpoint, func(ctx context.Context, e *consumer.Event) error {
			if e.Key == "key-3" && !recovered.Load() {
				return errors.New("not now")
			}
			return ledger.Handle(ctx, e)
		}, sqs.ConsumerOptions{Wait: time.Second, Options: consumer.Options{
			Inbox: &ledger, Concurrency: 1, RetryDelay: 20 * time.Millisecond, RetryDelayMax: 20 * time.Millisecond, Attempts: -1,
		}})
		all := events(8, 3)
		q.publish(t, all)
		testkit.Eventually(t, time.Minute, "the other keys", func() bool { return ledger.Count() == 21 })
		recovered.Store(true)
		ledger.Judge(t, all)
	})

	// Handlers of first events run for longer than the visibility timeout.
	t.Run("visibility is extended", func(t *testing.T) {
		t.Parallel()
		q := newQueue(t, endpoint, "slow")
		var ledger servers.Ledger
		handler := func(ctx context.Context, e *consumer.Event) error {
			for began := q.extended.Load(); e.Sequence == 1 && q.extended.Load() < began+3; {
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(10 * time.Millisecond):
				}
			}
			return ledger.Handle(ctx, e)
		}
		q.start(t, endpoint, handler, sqs.ConsumerOptions{Options: ledger.Options(), Wait: time.Second, Visibility: 2 * time.Second})
		all := events(3, 2)
		q.publish(t, all)
		ledger.Judge(t, all)
	})

	// The service refuses to extend one event in the middle of its key, whose handler fails meanwhile.
	t.Run("an event whose visibility is lost is handled before later events of its key", func(t *testing.T) {
		t.Parallel()
		q := newQueue(t, endpoint, "lost")
		q.publish(t, events(1, 4))
		unextended := &unextended{id: "0-2"}
		var mu sync.Mutex
		var handled []string
		o := sqs.ConsumerOptions{Wait: time.Second, Visibility: 2 * time.Second}
		o.RetryDelay, o.RetryDelayMax, o.Attempts = 100*time.Millisecond, 100*time.Millisecond, -1
		c, err := sqs.NewConsumer(client(endpoint, unextended), q.url, func(_ context.Context, e *consumer.Event) error {
			if e.ID == "0-2" && !unextended.lost() {
				return errors.New("not now")
			}
			mu.Lock()
			defer mu.Unlock()
			handled = append(handled, e.ID)
			return nil
		}, &o)
		servers.Consume(t, c, err)
		testkit.Eventually(t, time.Minute, "all events", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Contains(handled, "0-4")
		})
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"0-1", "0-2", "0-3", "0-4"}; !slices.Equal(handled, want) {
			t.Errorf("handled %q, want %q", handled, want)
		}
	})

	t.Run("dead letters have the reason", func(t *testing.T) {
		t.Parallel()
		q := newQueue(t, endpoint, "letters")
		var ledger servers.Ledger
		var mu sync.Mutex
		var outcomes []string
		o := sqs.ConsumerOptions{Wait: time.Second, Options: consumer.Options{Inbox: &ledger, RetryDelay: time.Millisecond, RetryDelayMax: time.Millisecond, Attempts: 3}}
		o.Observe = func(_ context.Context, out consumer.Outcome) {
			mu.Lock()
			defer mu.Unlock()
			outcomes = append(outcomes, out.Event.ID+" "+out.Action.String())
		}
		q.start(t, endpoint, func(ctx context.Context, e *consumer.Event) error {
			switch e.ID {
			case "0-1":
				return errors.New("never")
			case "0-2":
				return consumer.DeadLetter("unknown", errors.New("no such thing\x00"))
			}
			return ledger.Handle(ctx, e)
		}, o)
		q.publish(t, events(1, 3))
		testkit.Eventually(t, time.Minute, "the event after the dead letters", func() bool { return ledger.Count() == 1 })
		answer, err := q.client.ReceiveMessage(t.Context(), &awssqs.ReceiveMessageInput{
			QueueUrl: new(strings.Replace(q.url, ".fifo", "-dead-letters.fifo", 1)), MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"},
		})
		if err != nil || len(answer.Messages) != 2 {
			t.Fatalf("%d dead letters, %v; want 2", len(answer.Messages), err)
		}
		for i, want := range []string{"key-0 too_many_attempts: never", "key-0 unknown: no such thing "} {
			a := answer.Messages[i].MessageAttributes
			if got := *a[consumer.PropertyKey].StringValue + " " + *a[sqs.AttributeDeadLetterReason].StringValue; got != want {
				t.Errorf("dead letter %q, want %q", got, want)
			}
		}
		want := []string{"0-1 abandoned", "0-1 abandoned", "0-1 dead_lettered", "0-2 dead_lettered", "0-3 handled"}
		testkit.Eventually(t, time.Minute, "outcomes", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Equal(slices.Sorted(slices.Values(outcomes)), want) // deletions are concurrent
		})
	})

	t.Run("stop finishes handlers and releases the rest", func(t *testing.T) {
		t.Parallel()
		q := newQueue(t, endpoint, "stops")
		var ledger servers.Ledger
		begun, end := make(chan struct{}), make(chan struct{})
		all := events(1, 5)
		q.publish(t, all)
		stop := q.start(t, endpoint, func(ctx context.Context, e *consumer.Event) error {
			close(begun) // panics if a second event is handled
			<-end
			return ledger.Handle(ctx, e)
		}, sqs.ConsumerOptions{Options: consumer.Options{Inbox: &ledger}, Wait: time.Second, Visibility: 10 * time.Minute}) // longer than Judge waits
		<-begun
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		select {
		case <-stopped:
			t.Error("Run returned before its handler")
		case <-time.After(3 * time.Second): // moto continues a canceled receive request, which would receive released events
		}
		close(end)
		<-stopped
		q.start(t, endpoint, ledger.Handle, sqs.ConsumerOptions{Options: ledger.Options(), Wait: time.Second})
		ledger.Judge(t, all)
	})
}

func TestNewConsumerReportsAllInvalidOptions(t *testing.T) {
	t.Parallel()
	_, err := sqs.NewConsumer(nil, "", nil, &sqs.ConsumerOptions{Receivers: 9, MaxInFlight: 30, Visibility: time.Second, Options: consumer.Options{Concurrency: -1}})
	for _, text := range []string{"a client", "MaxInFlight at least", "Visibility 2 s", "Concurrency"} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v does not contain %q", err, text)
		}
	}
	if _, err := sqs.Declare(t.Context(), nil, "plain"); err == nil {
		t.Error("Declare accepts the name of a standard queue")
	}
}
