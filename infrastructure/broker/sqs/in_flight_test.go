package sqs

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/semaphore"

	"feedbox/infrastructure/consumer"
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
