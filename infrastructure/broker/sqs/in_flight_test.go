package sqs

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/semaphore"

	"feedbox/application/relay"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/relay/relayport"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) Do(r *http.Request) (*http.Response, error) { return f(r) }

// A message is lost when SQS refuses to extend its visibility, or when no request succeeded before its
// visibility ended. A failed request alone does not lose it.
func TestMessageIsLostWhenItsVisibilityIsNotExtended(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, answer   string
		left           time.Duration // of its visibility
		lost, extended bool
	}{
		{"extended", `{"Successful":[{"Id":"0"}]}`, time.Hour, false, true},
		{"refused", `{"Failed":[{"Id":"0","Code":"ReceiptHandleIsInvalid","SenderFault":true}]}`, time.Hour, true, false},
		{"failed", `{"Failed":[{"Id":"0","Code":"InternalError","SenderFault":false}]}`, time.Hour, false, false},
		{"failed for too long", `{"Failed":[{"Id":"0","Code":"InternalError","SenderFault":false}]}`, -time.Second, true, false},
		{"failure of another message", `{"Failed":[{"Id":"1","Code":"InternalError","SenderFault":true}]}`, time.Hour, false, true},
		{"no response", "", time.Hour, false, false},
		{"no response for too long", "", -time.Second, true, false},
	} {
		client := sqs.New(sqs.Options{
			Region: "eu-west-1", BaseEndpoint: aws.String("http://sqs.example"), Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), Retryer: aws.NopRetryer{},
			HTTPClient: roundTrip(func(r *http.Request) (*http.Response, error) {
				if c.answer == "" {
					return nil, errors.New("cut")
				}
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(c.answer)), Request: r}, nil
			}),
		})
		k, err := NewConsumer(client, "http://sqs.example/1/q.fifo", func(context.Context, *consumer.Event) error { return nil }, &ConsumerOptions{Visibility: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		r := &run{Consumer: k, inFlight: map[*message]bool{}, room: semaphore.NewWeighted(1)}
		if !r.room.TryAcquire(1) {
			t.Fatal("no room")
		}
		d := r.track(t.Context(), &types.Message{ReceiptHandle: aws.String("receipt")})
		expires := time.Now().Add(c.left)
		for m := range r.inFlight {
			m.expires = expires
			r.extend(t.Context(), []*message{m})
			if extended := !m.expires.Equal(expires); extended != c.extended {
				t.Errorf("%s: extended: %v", c.name, extended)
			}
		}
		if lost := errors.Is(context.Cause(d.Context), consumer.ErrLockLost); lost != c.lost || lost != (d.Context.Err() != nil) {
			t.Errorf("%s: the handler's context: %v", c.name, context.Cause(d.Context))
		}
		if r.room.TryAcquire(1) != c.lost || (len(r.inFlight) == 0) != c.lost {
			t.Errorf("%s: %d messages are in flight", c.name, len(r.inFlight))
		}
	}
}

// SQS does not redeliver a lost message while others of its group are in flight, so the group is lost with
// it. A settled message only waits for its deletion, which also ends its visibility.
func TestLostMessageEndsTheHoldOfItsGroup(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, lost string
		want       []string // in flight afterwards
	}{
		{"unsettled", "a2", []string{"a1 settled", "b1"}},
		{"settled", "a1 settled", []string{"a2", "a3", "b1"}},
	} {
		r := &run{Consumer: &Consumer{opts: ConsumerOptions{Visibility: time.Hour}}, inFlight: map[*message]bool{}, settled: make(chan *message, 1), room: semaphore.NewWeighted(4)}
		if !r.room.TryAcquire(4) {
			t.Fatal("no room")
		}
		for _, name := range []string{"a1 settled", "a2", "a3", "b1"} {
			d := r.track(t.Context(), &types.Message{MessageId: &name, Attributes: map[string]string{"MessageGroupId": name[:1]}})
			if name == "a1 settled" {
				d.Complete(consumer.Outcome{})
			}
		}
		all := maps.Clone(r.inFlight)
		for m := range all {
			if *m.MessageId == c.lost {
				r.untrack(m, consumer.ErrLockLost)
				r.untrack(m, consumer.ErrLockLost) // of a request that was running
			}
		}
		var left []string
		for m := range all {
			if r.inFlight[m] {
				left = append(left, *m.MessageId)
			}
			if lost := errors.Is(context.Cause(m.owned), consumer.ErrLockLost); lost == r.inFlight[m] {
				t.Errorf("%s: %s is lost: %v, in flight: %v", c.name, *m.MessageId, lost, r.inFlight[m])
			}
		}
		if slices.Sort(left); !slices.Equal(left, c.want) || !r.room.TryAcquire(int64(4-len(c.want))) {
			t.Errorf("%s: %q are in flight, want %q and room for the others", c.name, left, c.want)
		}
	}
}

// lettersService is a service whose dead-letter queue gives a batch of letters, and then fails or has none
// to give while some wait.
type lettersService struct {
	fails    bool
	received int
	released []string // bodies of requests
}

func (s *lettersService) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err = errors.Join(err, r.Context().Err()); err != nil {
		return nil, err
	}
	answer := `{}`
	switch _, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); operation {
	case "GetQueueAttributes":
		answer = `{"Attributes":{"RedrivePolicy":"{\"deadLetterTargetArn\":\"arn:aws:sqs:eu-west-1:1:dead.fifo\"}","ApproximateNumberOfMessages":"2"}}`
	case "GetQueueUrl":
		answer = `{"QueueUrl":"http://sqs.example/1/dead.fifo"}`
	case "ReceiveMessage":
		if s.received++; s.received == 1 {
			answer = `{"Messages":[{"MessageId":"m1","ReceiptHandle":"h1","Body":"{}"},{"MessageId":"m2","ReceiptHandle":"h2","Body":"{}"}]}`
		} else if s.fails {
			return nil, errors.New("cut")
		}
	case "ChangeMessageVisibilityBatch":
		s.released = append(s.released, string(body))
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

// SQS gives no more letters of a message group than ten at a time. Letters that were received are hidden
// until they are released.
func TestReadReleasesItsLettersAndReportsThoseThatItCannotSee(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		service := &lettersService{fails: fails}
		client := sqs.New(sqs.Options{
			Region: "eu-west-1", BaseEndpoint: aws.String("http://sqs.example"), Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), Retryer: aws.NopRetryer{},
			HTTPClient: service, DisableMessageChecksumValidation: true,
		})
		letters, more, err := NewDeadLetters(client, "http://sqs.example/1/q.fifo").Read(t.Context(), "q.fifo", 100)
		if fails && err == nil || !fails && (err != nil || len(letters) != 2 || !more) {
			t.Errorf("%d letters, more %v, %v", len(letters), more, err)
		}
		if len(service.released) != 1 || !strings.Contains(service.released[0], "h1") || !strings.Contains(service.released[0], "h2") {
			t.Errorf("a read that fails %v released %q", fails, service.released)
		}
	}

	service := &lettersService{} // a command that is canceled
	ctx, cancel := context.WithCancel(t.Context())
	client := sqs.New(sqs.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String("http://sqs.example"), Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), Retryer: aws.NopRetryer{},
		HTTPClient: service, DisableMessageChecksumValidation: true,
	})
	claim, err := NewDeadLetters(client, "http://sqs.example/1/q.fifo").Claim(ctx, "q.fifo", []string{"m1"})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if claim.Release(ctx); len(service.released) != 1 || !strings.Contains(service.released[0], "h1") {
		t.Errorf("a claim that is canceled released %q", service.released)
	}
}

// Another reader could get the letter during the request.
func TestLetterWhoseVisibilityNearlyEndsIsNotSent(t *testing.T) {
	t.Parallel()
	for left, used := range map[time.Duration]bool{30 * time.Second: false, 2 * time.Minute: true} {
		c := &letterClaim{expires: time.Now().Add(left), held: map[string]*types.Message{"m": {}}}
		if _, err := c.locked("m"); (err == nil) != used {
			t.Errorf("with %s left: %v", left, err)
		}
	}
}

// The owner of a key may have received an earlier wake-up before the intent of the operator.
func TestEachWakeUpIsSent(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	var body string
	client := sqs.New(sqs.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String("http://sqs.example"), Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), Retryer: aws.NopRetryer{}, DisableMessageChecksumValidation: true,
		HTTPClient: roundTrip(func(r *http.Request) (*http.Response, error) {
			var sent struct{ MessageDeduplicationID, MessageBody string }
			if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
				return nil, err
			}
			ids[sent.MessageDeduplicationID], body = true, sent.MessageBody
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{}`)), Request: r}, nil
		}),
	})
	k, err := NewConsumer(client, "http://sqs.example/1/q.fifo", func(context.Context, *consumer.Event) error { return nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := k.wake(t.Context(), "k"); err != nil {
			t.Error(err)
		}
	}
	if len(ids) != 3 || ids[""] {
		t.Errorf("3 wake-ups have the deduplication ids %v", ids)
	}
	if !isWakeUp(&consumer.Event{Action: typeWakeUp, Body: []byte(body)}) {
		t.Errorf("a message of body %q is no wake-up", body)
	}
}

// The ids of group and deduplication are hashes of keys and event ids that SQS does not accept.
func TestEventHasTheKeyAndTheIDOfItsMessage(t *testing.T) {
	t.Parallel()
	for _, m := range []relay.Message{{Key: "k", ID: "e"}, {Key: "a b", ID: "c d"}, {Key: "ключ", ID: strings.Repeat("x", idLimit+1)}, {Key: "12", ID: "34", Action: "56"}, {Key: "k", ID: "e", Action: typeWakeUp}} {
		m.Body = []byte(`{}`)
		sent := entry(0, &m, "source")
		e := event(&types.Message{Body: sent.MessageBody, MessageAttributes: sent.MessageAttributes, Attributes: map[string]string{
			"MessageGroupId": *sent.MessageGroupId, "MessageDeduplicationId": *sent.MessageDeduplicationId,
		}})
		if isWakeUp(e) {
			t.Errorf("event %q of action %q is a wake-up", m.ID, m.Action)
		}
		if e.Key != m.Key || e.ID != m.ID || e.Action != m.Action {
			t.Errorf("key %q, id %q, action %q, want %q, %q and %q", e.Key, e.ID, e.Action, m.Key, m.ID, m.Action)
		}
	}
}

// An operator decides by what a letter says about its event.
func TestLetterHasTheFieldsOfItsEvent(t *testing.T) {
	t.Parallel()
	sent := entry(0, &relay.Message{Key: "k", ID: "e", Action: "Paid", Sequence: 7, Body: []byte(`{}`)}, "source")
	attributes := map[string]string{
		"MessageGroupId": "k", "MessageDeduplicationId": "e", "ApproximateReceiveCount": "4", "SentTimestamp": "1700000000001", "DeadLetterQueueSourceArn": "arn:jobs",
	}
	for _, c := range []struct{ attribute, reason, description string }{
		{"", reasonReceives, ""},
		{"unknown_schema: version 9: no", "unknown_schema", "version 9: no"},
	} {
		if c.attribute != "" {
			sent.MessageAttributes[AttributeDeadLetterReason] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &c.attribute}
		}
		got := letter(&types.Message{MessageId: aws.String("m1"), Body: sent.MessageBody, MessageAttributes: sent.MessageAttributes, Attributes: attributes})
		want := relayport.DeadLetter{
			ID: "m1", Event: "e", Key: "k", Action: "Paid", Sequence: 7, Reason: c.reason, Description: c.description,
			EnqueuedAt: time.UnixMilli(1700000000001), Deliveries: 4, Headers: maps.Clone(attributes), Body: []byte(`{}`),
		}
		for name, value := range sent.MessageAttributes {
			want.Headers[name] = *value.StringValue
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// Probes and metrics of dependencies have the name, metrics of messages the system and the queue or topic.
func TestRelayBrokersNameTheirQueueOrTopic(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want relayport.Broker }{
		{NewRelayBroker(nil, "https://sqs.example/1/q.fifo", ""), relayport.Broker{Name: "sqs", System: "aws_sqs", Destination: "q.fifo"}},
		{NewTopicRelayBroker(nil, "arn:aws:sns:eu-west-1:1:t.fifo", ""), relayport.Broker{Name: "sns", System: "aws.sns", Destination: "t.fifo"}},
	} {
		if err := c.got.Check(); err != nil {
			t.Error(err)
		}
		c.got.Open = nil // functions cannot be compared
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%+v, want %+v", c.got, c.want)
		}
	}
}

// A subscription may outlast its queue, and may be that of another service.
func TestURLOfAQueueIsThatOfTheService(t *testing.T) {
	t.Parallel()
	const found, missing = `{"QueueUrl":"https://sqs.example/1/q.fifo"}`, `{"__type":"com.amazonaws.sqs#QueueDoesNotExist"}`
	for _, c := range []struct{ arn, answer, asked, url string }{
		{"arn:aws:sqs:eu-west-1:123:q.fifo", found, `{"QueueName":"q.fifo","QueueOwnerAWSAccountId":"123"}`, "https://sqs.example/1/q.fifo"},
		{"arn:aws:sqs:eu-west-1:123:gone.fifo", missing, `{"QueueName":"gone.fifo","QueueOwnerAWSAccountId":"123"}`, ""},
		{"arn:aws:lambda:eu-west-1:123:function:f", found, "", ""},
		{"q.fifo", found, "", ""},
	} {
		asked := ""
		client := sqs.New(sqs.Options{
			Region: "eu-west-1", BaseEndpoint: aws.String("http://sqs.example"), Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), Retryer: aws.NopRetryer{},
			HTTPClient: roundTrip(func(r *http.Request) (*http.Response, error) {
				body, err := io.ReadAll(r.Body)
				asked = string(body)
				status := http.StatusOK
				if c.answer == missing {
					status = http.StatusBadRequest
				}
				return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(c.answer)), Request: r}, err
			}),
		})
		url, err := QueueURL(t.Context(), client, c.arn)
		if _, isMissing := errors.AsType[*types.QueueDoesNotExist](err); url != c.url || (err == nil) != (c.url != "") || isMissing != (c.answer == missing) || asked != c.asked {
			t.Errorf("%s: URL %q, %v, after the request %s", c.arn, url, err, asked)
		}
	}
}
