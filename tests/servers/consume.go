package servers

import (
	"context"
	"encoding/json"
	"log"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"feedbox/infrastructure/consumer"
)

// Consumer is a consumer of one of the kits.
type Consumer interface {
	Run(ctx context.Context) error
}

// Consume runs a consumer until the test ends or stop is called, which waits for it to drain.
func Consume(t testing.TB, c Consumer, err error) (stop func()) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // canceled by the clean-up, which waits
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the consumer: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// WantFirstFailure runs a consumer that start returns without a logger, and expects that its first line
// about a failure to receive is written to the default log in this time, with this reason and these texts
// in the error and in the advice.
func WantFirstFailure(t testing.TB, start func() (Consumer, error), within time.Duration, reason, cause, advice string) {
	t.Helper()
	failures, before := make(failureLog, 1), slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(failures, nil)))
	defer func() {
		slog.SetDefault(before)
		log.SetOutput(os.Stderr) // SetDefault has changed it
	}()
	c, err := start()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	done, began := make(chan error, 1), time.Now()
	go func() { done <- c.Run(ctx) }()
	select {
	case f := <-failures:
		if after := time.Since(began); after > within {
			t.Errorf("the first line was written after %s", after)
		}
		if f.Reason != reason || !strings.Contains(f.Error, cause) || !strings.Contains(f.Next, advice) {
			t.Errorf("the first line is %+v; want reason %s, error %q, advice %q", f, reason, cause, advice)
		}
	case <-ctx.Done():
		t.Error("no failure was logged within a minute")
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("the consumer: %v", err)
	}
}

// failureLog is the writer of a log, and keeps the first failure to receive.
type failureLog chan failureLine

type failureLine struct{ Msg, Reason, Error, Next string }

// Write implements io.Writer.
func (l failureLog) Write(text []byte) (int, error) {
	var line failureLine
	if err := json.Unmarshal(text, &line); err == nil && strings.Contains(line.Msg, "failed") {
		select {
		case l <- line:
		default:
		}
	}
	return len(text), nil
}

// Options returns options of a consumer that writes into l.
func (l *Ledger) Options() consumer.Options {
	return consumer.Options{Inbox: l, Observe: l.Observe, RetryDelay: 50 * time.Millisecond}
}
