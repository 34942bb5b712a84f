package sqs_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/sqs"
	"feedbox/infrastructure/consumer"
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
	client := client("http://sqs.example", &silent{})
	const url = "http://sqs.example/1/q.fifo"
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
