package sqs_test

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
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

// request is the body of a send request.
type request struct {
	Entries []entry
}

type entry struct {
	ID                     string `json:"Id"`
	MessageDeduplicationID string `json:"MessageDeduplicationId"`
	MessageBody            string
}

// newPublisherTo returns a publisher to a service that responds to requests with the result of f.
func newPublisherTo(t *testing.T, o *sqs.PublisherOptions, f func(r request) (status int, body any)) *sqs.Publisher {
	t.Helper()
	tr := &transport{}
	answer := func(r *http.Request) (*http.Response, error) {
		var got request
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			return nil, err
		}
		status, body := f(got)
		text, err := json.Marshal(body)
		header := http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Requestid": {"1"}}
		if of, ok := body.(queryError); ok {
			header["X-Amzn-Query-Error"] = []string{of.Query + ";Sender"}
		}
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(string(text))), Request: r}, err
	}
	tr.respond.Store(&answer)
	p, err := sqs.NewPublisher(newClient("http://sqs.example", tr), "http://sqs.example/1/q.fifo", o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// queryError is an error response. SQS sends the code of its query protocol, too, and the client prefers it.
type queryError struct {
	Type  string `json:"__type"`
	Query string `json:"-"`
}

type (
	success struct {
		ID               string `json:"Id"`
		MessageID        string `json:"MessageId"`
		MD5OfMessageBody string
	}
	failure struct {
		ID            string `json:"Id"`
		Code, Message string
		SenderFault   bool
	}
	answer struct {
		Successful []success
		Failed     []failure
	}
)

// A failed message blocks only its key. A message that the response does not list is not sent.
func TestPartialFailureBlocksOnlyItsKeys(t *testing.T) {
	var mu sync.Mutex
	seen, accepted := map[string]int{}, 0
	o := &sqs.PublisherOptions{Sent: func(_ context.Context, r relay.BatchReport) {
		mu.Lock()
		defer mu.Unlock()
		accepted += r.Accepted
	}}
	p := newPublisherTo(t, o, func(r request) (int, any) {
		mu.Lock()
		defer mu.Unlock()
		var a answer
		for _, e := range r.Entries {
			seen[e.MessageDeduplicationID]++
			switch e.MessageDeduplicationID {
			case "1-1":
				a.Failed = append(a.Failed, failure{e.ID, "InternalError", "try again", false})
			case "2-0":
				a.Failed = append(a.Failed, failure{e.ID, "SomethingNew", "bad", true})
			case "3-1":
			default:
				a.Successful = append(a.Successful, accept(request{Entries: []entry{e}}).Successful...)
			}
		}
		return http.StatusOK, a
	})
	failed, ok := errors.AsType[*relay.PublishError](p.Publish(t.Context(), groups(5, 3)))
	if !ok || len(failed.Keys) != 3 {
		t.Fatalf("got %v", failed)
	}
	for i, want := range []struct {
		group, sent int
		class       relay.Class
		reason      string
	}{{1, 1, relay.Outage, "server_error"}, {2, 0, relay.Refused, "refused"}, {3, 1, relay.Outage, "no_answer"}} {
		if k := failed.Keys[i]; k.Group != want.group || k.Sent != want.sent || relay.ClassOf(k.Err) != want.class || relay.ReasonOf(k.Err) != want.reason {
			t.Errorf("got group %d, sent %d, %v; want %v", k.Group, k.Sent, k.Err, want)
		}
	}
	for _, never := range []string{"1-2", "2-1", "3-2"} {
		if seen[never] > 0 {
			t.Errorf("%s was sent after a failed message of its key", never)
		}
	}
	if accepted != 8 {
		t.Errorf("%d messages reported as accepted, want the 8 beside the failed ones", accepted)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s was sent %d times", id, n)
		}
	}
}

// The limit of a message is that of its queue, which is read when a message or a request is above 256 KiB.
func TestSizeLimitIsThatOfTheQueue(t *testing.T) {
	const kib = 1 << 10
	for _, c := range []struct {
		name    string
		size    int    // of each of five messages
		limit   string // of the queue; "": it must not be read
		option  int
		largest int // number of messages in the largest request
		refused bool
	}{
		{name: "small", size: 50 * kib, largest: 5},
		{name: "small, in a request above 256 KiB", size: 60 * kib, limit: "1048576", largest: 5},
		{name: "small, to an old queue", size: 60 * kib, limit: "262144", largest: 4},
		{name: "small, to a queue with a lower limit", size: 60 * kib, limit: "65536", largest: 4},
		{name: "large", size: 300 * kib, limit: "1048576", largest: 3},
		{name: "large, to an old queue", size: 300 * kib, limit: "262144", refused: true},
		{name: "above all limits", size: 1100 * kib, limit: "1048576", refused: true},
		{name: "large, limit not permitted to read", size: 300 * kib, limit: "denied", largest: 1},
		{name: "small, limit not permitted to read", size: 60 * kib, limit: "denied", largest: 4},
		{name: "above all limits, not permitted to read", size: 1100 * kib, limit: "denied", refused: true},
		{name: "option", size: 300 * kib, option: 700 * kib, largest: 2},
	} {
		var mu sync.Mutex
		largest, reads := 0, 0
		p := newPublisherTo(t, &sqs.PublisherOptions{MaxRequestBytes: c.option}, func(r request) (int, any) {
			mu.Lock()
			defer mu.Unlock()
			if len(r.Entries) > 0 {
				largest = max(largest, len(r.Entries))
				return http.StatusOK, accept(r)
			}
			if reads++; c.limit == "denied" {
				return http.StatusBadRequest, map[string]string{"__type": "com.amazonaws.sqs#AccessDenied", "message": "no"}
			}
			return http.StatusOK, map[string]any{"Attributes": map[string]string{"MaximumMessageSize": c.limit}}
		})
		err := p.Publish(t.Context(), sized(c.size))
		if c.refused {
			want(t, err, []int{0, 1, 2, 3, 4}, relay.Refused, "too_large")
		} else if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if largest != c.largest || (reads == 0) != (c.limit == "") || reads > 1 {
			t.Errorf("%s: at most %d messages in a request, want %d; the limit was read %d times", c.name, largest, c.largest, reads)
		}
	}
}

// An operator raises the limit and resubmits a parked event. The relay is not restarted.
func TestRaisedSizeLimitIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := "262144"
		p := newPublisherTo(t, nil, func(r request) (int, any) {
			if len(r.Entries) > 0 {
				return http.StatusOK, accept(r)
			}
			return http.StatusOK, map[string]any{"Attributes": map[string]string{"MaximumMessageSize": limit}}
		})
		want(t, p.Publish(t.Context(), sized(300<<10)), []int{0, 1, 2, 3, 4}, relay.Refused, "too_large")
		limit = "1048576"
		time.Sleep(2 * time.Minute)
		if err := p.Publish(t.Context(), sized(300<<10)); err != nil {
			t.Error(err)
		}
	})
}

// sized returns five messages of different keys with bodies of a size.
func sized(size int) []relay.Group {
	all := groups(5, 1)
	for i := range all {
		all[i].Messages[0].Body = []byte(strings.Repeat("x", size))
	}
	return all
}

// accept returns the response that accepts all messages of a request.
func accept(r request) (a answer) {
	for _, e := range r.Entries {
		sum := md5.Sum([]byte(e.MessageBody)) // the client verifies it
		a.Successful = append(a.Successful, success{e.ID, "m", hex.EncodeToString(sum[:])})
	}
	return a
}

// SQS may refuse a request for any of its messages.
func TestRefusedRequestRefusesOnlyASingleMessage(t *testing.T) {
	p := newPublisherTo(t, nil, func(request) (int, any) {
		return http.StatusBadRequest, map[string]string{"__type": "com.amazonaws.sqs#InvalidMessageContents", "message": "no"}
	})
	want(t, p.Publish(t.Context(), groups(2, 1)), []int{0, 1}, relay.Outage, "malformed")
	alone := groups(2, 1)
	alone[0].Alone, alone[1].Alone = true, true
	want(t, p.Publish(t.Context(), alone), []int{0, 1}, relay.Refused, "malformed")
}

// A fault of the KMS key, of the credential or of the set-up refuses no message: the key of the event would be
// parked, and throttling ends without an operator.
func TestFaultsOfKeyAndCredentialRefuseNoMessage(t *testing.T) {
	for _, c := range []struct {
		kind, query string // the names of the error, and of the same error in the query protocol
		class       relay.Class
		reason      string
	}{
		{"KmsThrottled", "KMS.ThrottlingException", relay.Outage, "throttled"},
		{"RequestThrottled", "RequestThrottled", relay.Outage, "throttled"},
		{"ThrottlingException", "Throttling", relay.Outage, "throttled"},
		{"KmsAccessDenied", "KMS.AccessDeniedException", relay.Blocked, "key_denied"},
		{"KmsDisabled", "KMS.DisabledException", relay.Blocked, "key_denied"},
		{"KmsNotFound", "KMS.NotFoundException", relay.Blocked, "key_denied"},
		{"KmsInvalidState", "KMS.InvalidStateException", relay.Blocked, "key_denied"},
		{"KmsInvalidKeyUsage", "KMS.InvalidKeyUsageException", relay.Blocked, "key_denied"},
		{"KmsOptInRequired", "KMS.OptInRequired", relay.Blocked, "key_denied"},
		{"ExpiredTokenException", "ExpiredToken", relay.Outage, "credential"},
		{"RequestExpired", "RequestExpired", relay.Outage, "credential"},
		{"InvalidSecurity", "InvalidSecurity", relay.Blocked, "access_denied"},
		{"MissingAuthenticationTokenException", "MissingAuthenticationToken", relay.Blocked, "access_denied"},
		{"InvalidSignatureException", "SignatureDoesNotMatch", relay.Blocked, "access_denied"},
		{"IncompleteSignature", "IncompleteSignature", relay.Blocked, "access_denied"},
		{"InvalidAddress", "InvalidAddress", relay.Blocked, "queue_not_found"},
		{"QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", relay.Blocked, "queue_not_found"},
		{"BatchRequestTooLong", "AWS.SimpleQueueService.BatchRequestTooLong", relay.Refused, "too_large"},
		{"UnsupportedOperation", "AWS.SimpleQueueService.UnsupportedOperation", relay.Refused, "not_allowed"},
	} {
		for _, code := range []string{c.kind, c.query} {
			p := newPublisherTo(t, nil, func(request) (int, any) {
				return http.StatusBadRequest, queryError{"com.amazonaws.sqs#" + c.kind, code}
			})
			want(t, p.Publish(t.Context(), groups(1, 1)), []int{0}, c.class, c.reason)
			p = newPublisherTo(t, nil, func(r request) (int, any) {
				return http.StatusOK, answer{Failed: []failure{{r.Entries[0].ID, code, "no", true}}}
			})
			want(t, p.Publish(t.Context(), groups(1, 1)), []int{0}, c.class, c.reason)
		}
	}
}

// The client gets its credential from another service. The code of an error of that one is not about the message.
func TestFaultsOfTheServiceOfCredentialsRefuseNoMessage(t *testing.T) {
	for _, variable := range []string{"AWS_ENDPOINT_URL_STS", "AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		for _, code := range []string{"InvalidIdentityToken", "IDPCommunicationError", "AccessDenied", "Throttling", "InvalidParameterValue", ""} {
			t.Run(variable+"/"+code, func(t *testing.T) {
				identity := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "text/xml")
					if variable == "AWS_CONTAINER_CREDENTIALS_FULL_URI" && code != "" {
						w.Header().Set("Content-Type", "application/json")
					}
					w.WriteHeader(http.StatusBadRequest)
					switch w.Header().Get("Content-Type") {
					case "application/json":
						fmt.Fprintf(w, `{"code":%q,"message":"no"}`, code)
					default:
						fmt.Fprintf(w, `<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>no</Message></Error></ErrorResponse>`, code)
					}
				}))
				defer identity.Close()
				for _, other := range []string{"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE"} {
					t.Setenv(other, "")
				}
				if variable == "AWS_ENDPOINT_URL_STS" {
					token := filepath.Join(t.TempDir(), "token")
					if err := os.WriteFile(token, []byte("jwt"), 0o600); err != nil {
						t.Fatal(err)
					}
					t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/relay")
					t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", token)
				}
				t.Setenv("AWS_MAX_ATTEMPTS", "1")
				t.Setenv("AWS_CONFIG_FILE", os.DevNull)
				t.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
				t.Setenv(variable, identity.URL)
				found, err := awsconfig.LoadDefaultConfig(t.Context(), awsconfig.WithRegion("eu-west-1"))
				if err != nil {
					t.Fatal(err)
				}
				p, err := sqs.NewPublisher(awssqs.NewFromConfig(found, func(o *awssqs.Options) { o.BaseEndpoint = aws.String("http://sqs.invalid") }), "http://sqs.invalid/1/q.fifo", nil)
				if err != nil {
					t.Fatal(err)
				}
				want(t, p.Publish(t.Context(), groups(1, 1)), []int{0}, relay.Outage, "credential")
			})
		}
	}
}

func TestMessageSentAloneSharesNoRequest(t *testing.T) {
	var mu sync.Mutex
	var requests [][]string
	p := newPublisherTo(t, nil, func(r request) (int, any) {
		mu.Lock()
		defer mu.Unlock()
		var a answer
		var ids []string
		for _, e := range r.Entries {
			sum := md5.Sum([]byte(e.MessageBody)) // the client verifies it
			a.Successful, ids = append(a.Successful, success{e.ID, "m", hex.EncodeToString(sum[:])}), append(ids, e.MessageDeduplicationID)
		}
		requests = append(requests, ids)
		return http.StatusOK, a
	})
	for alone := range 5 {
		all := groups(5, 2)
		all[alone].Alone = true
		requests = nil
		if err := p.Publish(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		own := func(id string) bool { return strings.HasPrefix(id, strconv.Itoa(alone)+"-") }
		for _, ids := range requests {
			if len(ids) > 1 && slices.ContainsFunc(ids, own) {
				t.Errorf("group %d shares the request %v", alone, ids)
			}
		}
	}
}

func TestInvalidCharactersAreRefusedBeforeSending(t *testing.T) {
	p := newPublisherTo(t, nil, func(request) (int, any) {
		t.Error("the message was sent")
		return http.StatusOK, answer{}
	})
	for _, body := range []string{"\x01", "\xff", "\xef\x20", "a\ufffe"} {
		bad := groups(1, 1)
		bad[0].Messages[0].Body = []byte(body)
		want(t, p.Publish(t.Context(), bad), []int{0}, relay.Refused, "invalid_characters")
	}
}

func TestGroupIDHashesInvalidKeys(t *testing.T) {
	for key, valid := range map[string]bool{"a-1": true, "{[/@x": true, "": false, "a b": false, "ä": false, strings.Repeat("k", 128): true, strings.Repeat("k", 129): false} {
		got := sqs.GroupID(key)
		if (got == key) != valid || len(got) > 128 || got == "" {
			t.Errorf("the group of %q is %q", key, got)
		}
	}
}
