package cosmos

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos/internal/store"
)

func TestCommitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		container, s := play(t, silent)
		options, _ := withDefaults(nil)
		c := newContainerContext(container, options, store.Session{})
		if err := errors.Join(c.Create(anEvent), c.Update(aContact)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := c.Save(ctx)
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %s", took)
		}
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != CodeOutcomeUnknown || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v; want %s for the deadline", err, CodeOutcomeUnknown)
		}
		_, err = c.Save(ctx) // it has ended already
		if !errors.As(err, &f) || f.Code == CodeOutcomeUnknown || len(s.bodies) != 1 {
			t.Errorf("error %v after %d requests; want none sent", err, len(s.bodies))
		}
	})
}

func TestThrottledCommitWaitsAsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		container, _ := play(t, status(429, store.HeaderRetryAfter, "1500"), stored(2))
		options, _ := withDefaults(nil)
		c := newContainerContext(container, options, store.Session{})
		if err := errors.Join(c.Create(anEvent), c.Update(aContact)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := c.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 1500*time.Millisecond {
			t.Errorf("it took %s; want 1.5 s", took)
		}
	})
}

// The wait after a failed attempt doubles. With a negative Backoff there is no wait.
func TestWaitsBetweenAttemptsDouble(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		options     Options
		least, most []time.Duration
	}{
		{Options{}, []time.Duration{25 * ms, 50 * ms}, []time.Duration{50 * ms, 100 * ms}},
		{Options{Attempts: 5, Backoff: 4 * time.Second}, []time.Duration{2e9, 4e9, 8e9, 16e9}, []time.Duration{4e9, 8e9, 16e9, 32e9}},
		{Options{Attempts: 3, Backoff: -1}, []time.Duration{0, 0}, []time.Duration{0, 0}},
		{Options{Attempts: 80, Backoff: -1}, make([]time.Duration, 79), make([]time.Duration, 79)},
	} {
		synctest.Test(t, func(t *testing.T) {
			options, _ := withDefaults(&test.options)
			var at []time.Time
			answers := make([]answer, options.Attempts)
			for i := range answers {
				answers[i] = func(r *http.Request) (*http.Response, error) {
					at = append(at, time.Now())
					return status(500)(r)
				}
			}
			container, _ := play(t, answers...)
			c := newContainerContext(container, options, store.Session{})
			if err := c.Create(anEvent); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Save(t.Context()); !fault.Is(err, fault.Unavailable) {
				t.Errorf("error %v", err)
			}
			if len(at) != options.Attempts {
				t.Fatalf("%d attempts; want %d", len(at), options.Attempts)
			}
			for i, least := range test.least {
				if wait := at[i+1].Sub(at[i]); wait < least || wait > test.most[i] {
					t.Errorf("wait %d is %s; want %s to %s", i+1, wait, least, test.most[i])
				}
			}
		})
	}
}

// An unanswered attempt ends after AttemptTimeout, or with the caller's context if that is negative.
func TestAttemptTimeout(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{0: 8 * time.Second, time.Second: time.Second, -1: time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			container, _ := play(t, silent)
			options, _ := withDefaults(&Options{AttemptTimeout: timeout, Attempts: 1})
			c := newContainerContext(container, options, store.Session{})
			if err := c.Create(anEvent); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			began := time.Now()
			if _, err := c.Save(ctx); !fault.Is(err, fault.Unavailable) {
				t.Errorf("error %v", err)
			}
			if took := time.Since(began); took != want {
				t.Errorf("AttemptTimeout %s: it took %s; want %s", timeout, took, want)
			}
		})
	}
}
