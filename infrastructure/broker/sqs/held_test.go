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

// TestExtend: a handler ends when the service refuses to keep its message from others, or when
// nothing was heard of the service until others may have it; not before.
func TestExtend(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, answer string
		left         time.Duration // until others may get it
		lost, longer bool
	}{
		{"extended", `{"Successful":[{"Id":"0"}]}`, time.Hour, false, true},
		{"refused", `{"Failed":[{"Id":"0","Code":"ReceiptHandleIsInvalid","SenderFault":true}]}`, time.Hour, true, false},
		{"failed", `{"Failed":[{"Id":"0","Code":"InternalError","SenderFault":false}]}`, time.Hour, false, false},
		{"failed for too long", `{"Failed":[{"Id":"0","Code":"InternalError","SenderFault":false}]}`, -time.Second, true, false},
		{"of another", `{"Failed":[{"Id":"1","Code":"InternalError","SenderFault":true}]}`, time.Hour, false, true},
		{"no answer", "", time.Hour, false, false},
		{"no answer for too long", "", -time.Second, true, false},
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
		r := &reception{Consumer: k, held: map[*held]bool{}, room: semaphore.NewWeighted(1)}
		if !r.room.TryAcquire(1) {
			t.Fatal("no room")
		}
		d := r.hold(t.Context(), &types.Message{ReceiptHandle: aws.String("receipt")})
		until := time.Now().Add(c.left)
		for h := range r.held {
			h.until = until
			r.extend(t.Context(), []*held{h})
			if longer := !h.until.Equal(until); longer != c.longer {
				t.Errorf("%s: kept from others for longer: %v", c.name, longer)
			}
		}
		if lost := errors.Is(context.Cause(d.Context), consumer.ErrLockLost); lost != c.lost || lost != (d.Context.Err() != nil) {
			t.Errorf("%s: the handler's context: %v", c.name, context.Cause(d.Context))
		}
		if r.room.TryAcquire(1) != c.lost || (len(r.held) == 0) != c.lost {
			t.Errorf("%s: %d messages are held", c.name, len(r.held))
		}
	}
}
