package sqs

import (
	"context"
	"errors"
	"io"
	"net/http"
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
