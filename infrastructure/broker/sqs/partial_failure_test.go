package sqs_test

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/sqs"
)

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
		return &http.Response{
			StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Requestid": {"1"}},
			Body: io.NopCloser(strings.NewReader(string(text))), Request: r,
		}, err
	}
	tr.respond.Store(&answer)
	p, err := sqs.NewPublisher(newClient("http://sqs.example", tr), "http://sqs.example/1/q.fifo", o)
	if err != nil {
		t.Fatal(err)
	}
	return p
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
