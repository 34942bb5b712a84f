package sqs_test

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // of the protocol
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/sqs"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/tests/servers"
)

// silent is a service that does not respond.
type silent struct{ receives atomic.Int32 }

func (s *silent) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "ReceiveMessage") {
		s.receives.Add(1)
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestOperationsEndIfTheServiceIsSilent(t *testing.T) {
	const url = "http://sqs.example/1/q.fifo"
	topics := topicClient("http://sns.example", &http.Client{Transport: &silent{}})
	looked := false // for the dead-letter queue
	counts := operations{"GetQueueUrl": func(*http.Request) (any, error) { return map[string]string{"QueueUrl": url}, nil }, "GetQueueAttributes": func(r *http.Request) (any, error) {
		if looked {
			return wait(r, 2*time.Hour, nil)
		}
		looked = true
		return map[string]any{"Attributes": map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:1:dead.fifo"}`}}, nil
	}}
	counting := client("http://sqs.example", counts)
	read := func(d *sqs.DeadLetters) func(ctx context.Context) error {
		return func(ctx context.Context) error { _, _, err := d.Read(ctx, "q.fifo", 10); return err }
	}
	client := client("http://sqs.example", &silent{})
	for name, c := range map[string]struct {
		do    func(ctx context.Context) error
		limit time.Duration
	}{
		"publish": {func(ctx context.Context) error {
			p, err := sqs.NewPublisher(client, url, nil)
			if err != nil {
				return err
			}
			if err = p.Publish(ctx, events(3, 2)); relay.ReasonOf(err) != "send_timeout" {
				t.Errorf("error %v, want send_timeout", err)
			}
			return err
		}, 15 * time.Second},
		"declare": {func(ctx context.Context) error {
			_, err := sqs.Declare(ctx, client, "q.fifo")
			return err
		}, time.Minute},
		"dead letters":            {read(sqs.NewDeadLetters(client, url)), 10 * time.Second},
		"dead letters of a topic": {read(sqs.NewTopicDeadLetters(topics, client, "arn:aws:sns:eu-west-1:1:t.fifo")), 10 * time.Second},
		"number of dead letters":  {read(sqs.NewDeadLetters(counting, url)), 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				began := time.Now()
				err := c.do(ctx)
				if took := time.Since(began); err == nil || took > c.limit {
					t.Errorf("error %v after %v, want one within %v", err, took, c.limit)
				}
			})
		})
	}
}

// A receive request without a response is repeated, because SQS responds after Wait at the latest.
func TestReceiveIsRepeatedIfTheServiceIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &silent{}
		c, err := sqs.NewConsumer(client("http://sqs.example", s), "http://sqs.example/1/q.fifo", func(context.Context, *consumer.Event) error { return nil }, &sqs.ConsumerOptions{Receivers: 1})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
		if n := s.receives.Load(); n < 9 {
			t.Errorf("%d requests in 10 minutes, want one in a minute at least", n)
		}
	})
}

// Failed requests keep no room for events that they did not return.
func TestConsumerReceivesAfterManyFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0 // of the only receiver
		service := answering(func() (*http.Response, error) {
			if requests++; requests <= 30 {
				return nil, errors.New("cut")
			}
			time.Sleep(20 * time.Second)
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{}`))}, nil
		})
		o := &sqs.ConsumerOptions{Receivers: 1, MaxInFlight: 20, Options: consumer.Options{Logger: slog.New(slog.DiscardHandler)}}
		c, err := sqs.NewConsumer(client("http://sqs.example", service), "http://sqs.example/1/q.fifo", func(context.Context, *consumer.Event) error { return nil }, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := c.Run(ctx); err != nil || requests < 60 {
			t.Errorf("%d requests in an hour, %v; want requests after 30 failures", requests, err)
		}
	})
}

// answering is a service with one reply, as SQS sends it.
type answering func() (*http.Response, error)

func (a answering) RoundTrip(*http.Request) (*http.Response, error) { return a() }

// A consumer that cannot receive says why and what to do about it, in the default log.
func TestFirstFailureIsLoggedWithCauseAndRemedy(t *testing.T) {
	for _, c := range []struct {
		name                  string
		service               answering
		reason, cause, advice string
	}{
		{"wrong queue", func() (*http.Response, error) {
			body := `{"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "The specified queue does not exist."}`
			return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
		}, "queue_not_found", "does not exist", "correct the URL"},
		{"closed port", func() (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}, "unreachable", "connection refused", "port"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				servers.WantFirstFailure(t, func() (servers.Consumer, error) {
					return sqs.NewConsumer(client("http://sqs.example", c.service), "http://sqs.example/1/q.fifo", func(context.Context, *consumer.Event) error { return nil }, nil)
				}, 10*time.Millisecond, c.reason, c.cause, c.advice)
			})
		})
	}
}

// A handler must not run on when the visibility of its event has ended: another consumer handles it then.
// A service that is silent when the visibility is extended leaves no error that would tell.
func TestSilentExtensionsLoseTheMessageInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events, visibility, answers = 25, 30 * time.Second, 2 * time.Minute
		received, began := 0, time.Now() // by the only receiver
		service := operations{
			"ReceiveMessage": func(*http.Request) (any, error) {
				if received == events {
					time.Sleep(20 * time.Second)
				}
				messages := []any{}
				for ; received < events && len(messages) < 10; received++ {
					messages = append(messages, message(fmt.Sprint("key-", received), fmt.Sprint(received), "{}"))
				}
				return map[string]any{"Messages": messages}, nil
			},
			"ChangeMessageVisibilityBatch": func(r *http.Request) (any, error) {
				if time.Since(began) < answers {
					return map[string]any{}, nil
				}
				<-r.Context().Done()
				return nil, r.Context().Err()
			},
		}
		var lost atomic.Int32
		handler := func(ctx context.Context, e *consumer.Event) error {
			<-ctx.Done()
			if after := time.Since(began) - answers; after < 0 || after > visibility || !errors.Is(context.Cause(ctx), consumer.ErrLockLost) {
				t.Errorf("the handler of event %s ends %v after the last answer: %v", e.ID, after, context.Cause(ctx))
			}
			lost.Add(1)
			return ctx.Err()
		}
		o := &sqs.ConsumerOptions{Receivers: 1, Visibility: visibility, Options: consumer.Options{Concurrency: events, Logger: slog.New(slog.DiscardHandler)}}
		c, err := sqs.NewConsumer(client("http://sqs.example", service), "http://sqs.example/1/q.fifo", handler, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if err := c.Run(ctx); err != nil || lost.Load() != events {
			t.Errorf("%d handlers have ended, want %d; %v", lost.Load(), events, err)
		}
	})
}

// wait answers after a time, unless the request is canceled.
func wait(r *http.Request, d time.Duration, answer any) (any, error) {
	select {
	case <-time.After(d):
		return answer, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// runFor runs a consumer of a service for a time, and until it has drained.
func runFor(t *testing.T, service operations, d time.Duration, o *sqs.ConsumerOptions, handler consumer.Handler) {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	c, err := sqs.NewConsumer(client("http://sqs.example", service), "http://sqs.example/1/q.fifo", handler, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := c.Run(ctx); err != nil {
		t.Error(err)
	}
}

// giving returns messages up to a number, the first after a second.
func giving(events int) func(*http.Request) (any, error) {
	given := 0
	return func(r *http.Request) (any, error) {
		if given == events {
			return wait(r, 20*time.Second, map[string]any{})
		}
		messages := []any{}
		for ; given < events && len(messages) < 10; given++ {
			messages = append(messages, message(fmt.Sprint("key-", given), fmt.Sprint(given), "{}"))
		}
		return wait(r, time.Second, map[string]any{"Messages": messages})
	}
}

// The service counts the visibility from the arrival of a request, and its answer may be late. A message is
// extended after half of its visibility, because each request costs.
func TestSlowExtensionsAreInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const visibility, slow = 30 * time.Second, 4 * time.Second
		began := time.Now()
		var mu sync.Mutex
		var extended time.Time // the last request with an answer
		requests := 0
		service := operations{"ReceiveMessage": giving(1), "ChangeMessageVisibilityBatch": func(r *http.Request) (any, error) {
			if time.Since(began) > 10*time.Minute {
				return wait(r, time.Hour, nil)
			}
			mu.Lock()
			extended = time.Now()
			requests++
			mu.Unlock()
			return wait(r, slow, map[string]any{})
		}}
		runFor(t, service, 12*time.Minute, &sqs.ConsumerOptions{Receivers: 1, Visibility: visibility}, func(ctx context.Context, _ *consumer.Event) error {
			<-ctx.Done()
			mu.Lock()
			defer mu.Unlock()
			if lasted := time.Since(extended); time.Since(began) < 10*time.Minute || lasted > visibility {
				t.Errorf("the handler ended %s after the start and %s after the last extension, want not before the service was silent, and at most %s", time.Since(began), lasted, visibility)
			}
			return ctx.Err()
		})
		if most := int(10*time.Minute/(visibility/2)) + 1; requests > most {
			t.Errorf("%d requests in 10 minutes, want at most %d", requests, most)
		}
	})
}

// Visibilities are extended, and handled events deleted, until the drain has ended.
func TestDrainKeepsItsEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 25
		var extensions, deleted atomic.Int32
		service := operations{
			"ReceiveMessage": giving(events),
			"ChangeMessageVisibilityBatch": func(r *http.Request) (any, error) {
				extensions.Add(1)
				return map[string]any{}, r.Context().Err()
			},
			"DeleteMessageBatch": func(r *http.Request) (any, error) {
				var request struct{ Entries []any }
				if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
					return nil, err
				}
				answer, err := wait(r, 2*time.Second, map[string]any{})
				if err == nil {
					deleted.Add(int32(len(request.Entries)))
				}
				return answer, err
			},
		}
		o := &sqs.ConsumerOptions{Receivers: 1, Visibility: 30 * time.Second, Options: consumer.Options{Concurrency: events, DrainTimeout: 10 * time.Minute}}
		runFor(t, service, 10*time.Second, o, func(ctx context.Context, e *consumer.Event) error {
			time.Sleep(5 * time.Minute)
			if ctx.Err() != nil {
				t.Errorf("event %s: %v", e.ID, context.Cause(ctx))
			}
			return ctx.Err()
		})
		if deleted.Load() != events || extensions.Load() < 3*events/10 {
			t.Errorf("%d of %d handled events are deleted, after %d requests to extend them", deleted.Load(), events, extensions.Load())
		}
	})
}

// An event that was handled and cannot be deleted is dropped at its redelivery. It takes no room until then.
func TestFailedDeletionsDoNotStopAConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var handled atomic.Int32
		service := operations{
			"ReceiveMessage":     giving(200),
			"DeleteMessageBatch": func(*http.Request) (any, error) { return nil, errors.New("cut") },
		}
		runFor(t, service, time.Hour, &sqs.ConsumerOptions{Receivers: 1, MaxInFlight: 20}, func(context.Context, *consumer.Event) error {
			handled.Add(1)
			return nil
		})
		if handled.Load() != 200 {
			t.Errorf("%d of 200 events handled while none can be deleted", handled.Load())
		}
	})
}

// A message may have the maximum size, so that its dead letter has no room for a reason. Its key must go on
// all the same.
func TestDeadLetterOfTheMaximumSizeIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 1 << 20
		received := 0 // by the only receiver
		var stored []string
		service := operations{
			"ReceiveMessage": func(*http.Request) (any, error) {
				if received++; received > 1 {
					time.Sleep(20 * time.Second)
					return map[string]any{}, nil
				}
				return map[string]any{"Messages": []any{message("key", "1", strings.Repeat("x", limit)), message("key", "2", "{}")}}, nil
			},
			"GetQueueAttributes": func(*http.Request) (any, error) {
				return map[string]any{"Attributes": map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:1:dead.fifo"}`}}, nil
			},
			"GetQueueUrl": func(*http.Request) (any, error) {
				return map[string]any{"QueueUrl": "http://sqs.example/1/dead.fifo"}, nil
			},
			"SendMessage": func(r *http.Request) (any, error) {
				var sent struct {
					MessageBody, MessageDeduplicationID string
					MessageAttributes                   map[string]struct{ DataType, StringValue string }
				}
				if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
					return nil, err
				}
				size := len(sent.MessageBody)
				for name, value := range sent.MessageAttributes {
					size += len(name) + len(value.DataType) + len(value.StringValue)
				}
				if size > limit {
					return map[string]any{"__type": "com.amazonaws.sqs#InvalidParameterValue", "message": "Value for parameter MessageBody is invalid. Reason: Message must be shorter than 1048576 bytes."}, nil
				}
				stored = append(stored, sent.MessageDeduplicationID)
				return map[string]any{"MessageId": "m", "MD5OfMessageBody": fmt.Sprintf("%x", md5.Sum([]byte(sent.MessageBody)))}, nil
			},
		}
		handled := 0 // of one key
		handler := func(_ context.Context, e *consumer.Event) error {
			if e.ID == "1" {
				return consumer.DeadLetter("broken", errors.New("cannot be handled"))
			}
			handled++
			return nil
		}
		o := &sqs.ConsumerOptions{Receivers: 1, Options: consumer.Options{Logger: slog.New(slog.DiscardHandler)}}
		c, err := sqs.NewConsumer(client("http://sqs.example", service), "http://sqs.example/1/q.fifo", handler, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := c.Run(ctx); err != nil || !slices.Equal(stored, []string{"1"}) || handled != 1 {
			t.Errorf("within an hour, dead letters %q, the next event handled %d times; %v", stored, handled, err)
		}
	})
}

// Only a dead letter that SQS refuses is stored without its reason. After an outage it can be stored with it.
func TestThrottledDeadLetterKeepsItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sends := 0 // of one key
		var reasons []string
		service := operations{
			"ReceiveMessage": giving(1),
			"GetQueueAttributes": func(*http.Request) (any, error) {
				return map[string]any{"Attributes": map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:1:dead.fifo"}`}}, nil
			},
			"GetQueueUrl": func(*http.Request) (any, error) {
				return map[string]any{"QueueUrl": "http://sqs.example/1/dead.fifo"}, nil
			},
			"SendMessage": func(r *http.Request) (any, error) {
				if sends++; sends <= 3 { // the client repeats it twice
					return map[string]any{"__type": "com.amazonaws.sqs#RequestThrottled", "message": "too many requests"}, nil
				}
				var sent struct {
					MessageBody       string
					MessageAttributes map[string]struct{ StringValue string }
				}
				err := json.NewDecoder(r.Body).Decode(&sent)
				reasons = append(reasons, sent.MessageAttributes[sqs.AttributeDeadLetterReason].StringValue)
				return map[string]any{"MessageId": "m", "MD5OfMessageBody": fmt.Sprintf("%x", md5.Sum([]byte(sent.MessageBody)))}, err
			},
		}
		runFor(t, service, time.Hour, &sqs.ConsumerOptions{Receivers: 1}, func(context.Context, *consumer.Event) error {
			return consumer.DeadLetter("broken", errors.New("cannot be handled"))
		})
		if len(reasons) != 1 || reasons[0] != "broken: cannot be handled" {
			t.Errorf("dead letters with the reasons %q after %d requests", reasons, sends)
		}
	})
}

// oneLetter is a service with one dead letter, of another producer, which sets no attributes. It records the names of
// the queues that were looked up, and the attributes of the message that was sent.
func oneLetter(requested *[]string, sent *map[string]struct{ StringValue string }) operations {
	receives := 0
	return operations{
		"GetQueueAttributes": func(*http.Request) (any, error) {
			return map[string]any{"Attributes": map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:1:dead.fifo"}`}}, nil
		},
		"GetQueueUrl": func(r *http.Request) (any, error) {
			var of struct{ QueueName string }
			err := json.NewDecoder(r.Body).Decode(&of)
			*requested = append(*requested, of.QueueName)
			return map[string]any{"QueueUrl": "http://sqs.example/1/" + of.QueueName}, err
		},
		"ReceiveMessage": func(*http.Request) (any, error) {
			if receives++; receives > 1 {
				return map[string]any{}, nil
			}
			return map[string]any{"Messages": []any{message("key", "event-1", "{}")}}, nil
		},
		"SendMessage": func(r *http.Request) (any, error) {
			var of struct {
				MessageAttributes map[string]struct{ StringValue string }
			}
			err := json.NewDecoder(r.Body).Decode(&of)
			*sent = of.MessageAttributes
			return map[string]any{"MessageId": "m", "MD5OfMessageBody": fmt.Sprintf("%x", md5.Sum([]byte("{}")))}, err
		},
	}
}

// The deduplication id of a resubmission is another one, and the inbox knows the event by its own.
func TestResubmittedLetterWithoutAttributesKeepsTheIDOfItsEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requested []string
		var sent map[string]struct{ StringValue string }
		d := sqs.NewDeadLetters(client("http://sqs.example", oneLetter(&requested, &sent)), "http://sqs.example/1/q.fifo")
		claim, err := d.Claim(t.Context(), "q.fifo", []string{"event-1"})
		if err != nil {
			t.Fatal(err)
		}
		defer claim.Release(t.Context())
		err = claim.Resubmit(t.Context(), "event-1", relayport.Resubmission{ID: "again"})
		if id := sent["cloudEvents_id"].StringValue; err != nil || id != "event-1" {
			t.Errorf("sent with the event id %q, %v", id, err)
		}
	})
}

// One name may be the end of another.
func TestDeadLettersOfATopicAreThoseOfTheQueueWithTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		subscribed := roundTrip(func(r *http.Request) (*http.Response, error) {
			const member = `<member><Endpoint>arn:aws:sqs:eu-west-1:1:%s</Endpoint></member>`
			answer := `<ListSubscriptionsByTopicResponse><ListSubscriptionsByTopicResult><Subscriptions>` + fmt.Sprintf(member+member, "new-orders.fifo", "orders.fifo") +
				`</Subscriptions></ListSubscriptionsByTopicResult></ListSubscriptionsByTopicResponse>`
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/xml"}}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
		})
		var requested []string
		var sent map[string]struct{ StringValue string }
		d := sqs.NewTopicDeadLetters(topicClient("http://sns.example", &http.Client{Transport: subscribed}), client("http://sqs.example", oneLetter(&requested, &sent)), "arn:aws:sns:eu-west-1:1:t.fifo")
		claim, err := d.Claim(t.Context(), "orders.fifo", []string{"event-1"})
		if err != nil {
			t.Fatal(err)
		}
		claim.Release(t.Context())
		if want := []string{"orders.fifo", "dead.fifo"}; !slices.Equal(requested, want) {
			t.Errorf("the queues %q were looked up, want %q", requested, want)
		}
	})
}

type roundTrip func(r *http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// operations is a service by the names of its operations. Others have an empty answer.
type operations map[string]func(*http.Request) (any, error)

func (o operations) RoundTrip(r *http.Request) (*http.Response, error) {
	_, name, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var answer any = map[string]any{}
	if operation := o[name]; operation != nil {
		var err error
		if answer, err = operation(r); err != nil {
			return nil, err
		}
	}
	status := http.StatusOK
	if fault, _ := answer.(map[string]any); fault["__type"] != nil {
		status = http.StatusBadRequest
	}
	body, err := json.Marshal(answer)
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, err
}

// message is a message as SQS sends it.
func message(key, id, body string) map[string]any {
	return map[string]any{
		"MessageId": id, "ReceiptHandle": "receipt-" + id, "Body": body, "MD5OfBody": fmt.Sprintf("%x", md5.Sum([]byte(body))),
		"Attributes": map[string]string{"MessageGroupId": key, "MessageDeduplicationId": id, "ApproximateReceiveCount": "1"},
	}
}

// unextended is a transport to a service that cannot extend the first delivery of the event with this id.
type unextended struct {
	id string

	mu      sync.Mutex // guards the fields below
	receipt string
	since   time.Time // of the first refusal
}

// lost reports whether the visibility has ended.
func (u *unextended) lost() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.since.IsZero() && time.Since(u.since) > 4*time.Second
}

func (u *unextended) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent struct {
		QueueURL string `json:"QueueUrl"`
		Entries  []map[string]any
	}
	refused := []any{}
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "ChangeMessageVisibilityBatch") {
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			return nil, err
		}
		u.mu.Lock()
		sent.Entries = slices.DeleteFunc(sent.Entries, func(e map[string]any) bool {
			if e["ReceiptHandle"] != u.receipt {
				return false
			}
			refused = append(refused, map[string]any{"Id": e["Id"], "Code": "InternalError"})
			if u.since.IsZero() {
				u.since = time.Now()
			}
			return true
		})
		u.mu.Unlock()
		body, err := json.Marshal(sent)
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	got := map[string]any{}
	status, header := http.StatusOK, http.Header{"Content-Type": {"application/x-amz-json-1.0"}}
	if sent.QueueURL == "" || len(sent.Entries) > 0 {
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		defer func() { _ = response.Body.Close() }()
		if err := json.NewDecoder(response.Body).Decode(&got); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		status = response.StatusCode
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	messages, _ := got["Messages"].([]any)
	for _, m := range messages {
		if m := m.(map[string]any); u.receipt == "" && m["Attributes"].(map[string]any)["MessageDeduplicationId"] == u.id {
			u.receipt = m["ReceiptHandle"].(string)
		}
	}
	if len(refused) > 0 {
		got["Failed"] = refused
	}
	body, err := json.Marshal(got)
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, err
}
