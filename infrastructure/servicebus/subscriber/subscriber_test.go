package subscriber

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recorder is a handler and an observer that keep what they see.
type recorder struct {
	mu       sync.Mutex
	handled  map[string][]string // ids by key
	outcomes []string            // "id verdict action"
	handler  Handler             // called after recording; nil = succeeds
}

func (r *recorder) handle(ctx context.Context, e *Event) error {
	r.mu.Lock()
	if r.handled == nil {
		r.handled = map[string][]string{}
	}
	r.handled[e.Key] = append(r.handled[e.Key], e.ID)
	r.mu.Unlock()
	if r.handler != nil {
		return r.handler(ctx, e)
	}
	return nil
}

func (r *recorder) observe(_ context.Context, o Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcomes = append(r.outcomes, fmt.Sprintf("%s %s %s", o.Event.ID, o.Verdict, o.Action))
}

// run starts a subscriber over src and returns a function that stops it.
func run(t *testing.T, src *fakeSource, r *recorder, opts Options) (stop func()) {
	t.Helper()
	opts.Observe = r.observe
	s, err := newSubscriber(src, r.handle, &opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
	}
}

func TestHandlesSessionsInOrderAndInParallel(t *testing.T) {
	for _, receive := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			src, r := newFakeSource(), &recorder{}
			want := map[string][]string{}
			for k := range 20 {
				for i := range 10 {
					key, id := fmt.Sprintf("k%d", k), fmt.Sprintf("k%d.%d", k, i+1)
					src.put(key, id, int64(i+1))
					want[key] = append(want[key], id)
				}
			}
			r.handler = func(ctx context.Context, _ *Event) error { wait(ctx, 10*time.Millisecond); return nil }
			stop := run(t, src, r, Options{Sessions: 4, Receive: receive})
			time.Sleep(time.Minute)
			stop()
			if diff := cmp.Diff(want, r.handled); diff != "" {
				t.Errorf("handled (-want +got):\n%s", diff)
			}
			if src.most != 4 || !src.empty() {
				t.Errorf("held %d sessions at most, want 4; empty %v", src.most, src.empty())
			}
		})
	}
}

func TestDropsDuplicatesAndStaleEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, r := newFakeSource(), &recorder{}
		src.put("k", "e1", 1)
		src.put("k", "e2", 2)
		src.put("k", "e2", 2)
		src.put("k", "e1", 1)
		src.put("k", "e3", 3)
		stop := run(t, src, r, Options{})
		synctest.Wait()
		stop()
		want := []string{"e1 fresh handled", "e2 fresh handled", "e2 duplicate dropped", "e1 stale dropped", "e3 fresh handled"}
		if diff := cmp.Diff(want, r.outcomes); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
	})
}

func TestWaitsForAMissingEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, r := newFakeSource(), &recorder{}
		src.put("k", "e1", 1)
		src.put("k", "e3", 3)
		stop := run(t, src, r, Options{GapDeliveries: 2})
		time.Sleep(time.Minute)
		stop()
		want := []string{"e1 fresh handled", "e3 gap put_back", "e3 gap put_back", "e3 gap handled"}
		if diff := cmp.Diff(want, r.outcomes); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
	})
}

func TestAFailedEventIsHandledAgainBeforeItsFollowers(t *testing.T) {
	for _, receive := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			src, r := newFakeSource(), &recorder{}
			for i := range 3 {
				src.put("k", fmt.Sprintf("e%d", i+1), int64(i+1))
			}
			attempts := 0
			r.handler = func(_ context.Context, e *Event) error {
				if e.ID != "e2" {
					return nil
				}
				switch attempts++; attempts {
				case 1:
					return errors.New("not now")
				case 2:
					panic("cannot")
				}
				return nil
			}
			stop := run(t, src, r, Options{Receive: receive})
			time.Sleep(time.Minute)
			stop()
			want := []string{"e1 fresh handled", "e2 fresh put_back", "e2 fresh put_back", "e2 fresh handled", "e3 fresh handled"}
			if diff := cmp.Diff(want, r.outcomes); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDeadLettersWhatTheHandlerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, r := newFakeSource(), &recorder{}
		src.put("k", "e1", 1)
		src.put("k", "e2", 2)
		r.handler = func(_ context.Context, e *Event) error {
			if e.ID == "e1" {
				return fmt.Errorf("handle: %w", DeadLetter("unknown_schema", errors.New("version 9")))
			}
			return nil
		}
		stop := run(t, src, r, Options{})
		synctest.Wait()
		stop()
		if diff := cmp.Diff([]string{"e1 fresh dead_lettered", "e2 fresh handled"}, r.outcomes); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"e1 unknown_schema version 9"}, src.dead); diff != "" {
			t.Errorf("dead letters (-want +got):\n%s", diff)
		}
	})
}

func TestRenewsTheLockWhileTheHandlerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, r := newFakeSource(), &recorder{}
		src.put("k", "e1", 1)
		r.handler = func(ctx context.Context, _ *Event) error { wait(ctx, 5*time.Minute); return ctx.Err() }
		stop := run(t, src, r, Options{SessionMax: -1})
		time.Sleep(6 * time.Minute)
		stop()
		if diff := cmp.Diff([]string{"e1 fresh handled"}, r.outcomes); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
		if src.renewals < 25 || src.renewals > 40 {
			t.Errorf("%d renewals in 5 minutes of 30 s locks, want one every 10 s", src.renewals)
		}
	})
}

func TestALostLockEndsTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, r := newFakeSource(), &recorder{}
		src.steal = true
		src.put("k", "e1", 1)
		var cause error
		calls := 0
		r.handler = func(ctx context.Context, _ *Event) error {
			if calls++; calls > 1 {
				return nil
			}
			<-ctx.Done()
			cause = context.Cause(ctx)
			src.mu.Lock()
			src.steal = false
			src.mu.Unlock()
			return ctx.Err()
		}
		stop := run(t, src, r, Options{})
		time.Sleep(time.Minute)
		stop()
		if !errors.Is(cause, ErrLockLost) {
			t.Errorf("cause %v, want ErrLockLost", cause)
		}
		if got := r.outcomes[len(r.outcomes)-1]; got != "e1 fresh handled" || !src.empty() {
			t.Errorf("last outcome %s, want the event handled by the next holder", got)
		}
	})
}

func TestDrainLetsHandlersFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, r := newFakeSource(), &recorder{}
		src.put("k", "e1", 1)
		src.put("k", "e2", 2)
		r.handler = func(ctx context.Context, _ *Event) error { wait(ctx, 5*time.Second); return ctx.Err() }
		stop := run(t, src, r, Options{})
		time.Sleep(time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("drain took %v, want the 4 s the handler still needed", took)
		}
		if diff := cmp.Diff([]string{"e1 fresh handled"}, r.outcomes); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
		if src.holders != 0 || len(src.sessions["k"].messages) != 1 {
			t.Errorf("%d sessions still held, %d messages left, want 0 and 1", src.holders, len(src.sessions["k"].messages))
		}
	})
}

func TestDrainHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, r := newFakeSource(), &recorder{}
		src.put("k", "e1", 1)
		var cause error
		r.handler = func(ctx context.Context, _ *Event) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		}
		stop := run(t, src, r, Options{DrainTimeout: 3 * time.Second})
		time.Sleep(time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took != 3*time.Second || !errors.Is(cause, ErrDrainTimeout) {
			t.Errorf("drain took %v with %v, want 3 s and ErrDrainTimeout", took, cause)
		}
	})
}

func TestABusySessionGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, r := newFakeSource(), &recorder{}
		for i := range 1000 {
			src.put("hot", fmt.Sprintf("h%d", i+1), int64(i+1))
		}
		src.put("cold", "c1", 1)
		r.handler = func(ctx context.Context, _ *Event) error { wait(ctx, time.Second); return nil }
		stop := run(t, src, r, Options{Sessions: 1, SessionMax: 10 * time.Second})
		time.Sleep(15 * time.Second)
		stop()
		if len(r.handled["cold"]) != 1 {
			t.Error("the other session had no turn")
		}
	})
}

func TestSurvivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, r := newFakeSource(), &recorder{}
		src.failures = 10
		src.put("k", "e1", 1)
		stop := run(t, src, r, Options{Sessions: 1})
		time.Sleep(10 * time.Minute)
		stop()
		if diff := cmp.Diff([]string{"e1 fresh handled"}, r.outcomes); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
	})
}

func TestJudge(t *testing.T) {
	last := Mark{Sequence: 5, AggregateVersion: 3, EventID: "e5"}
	tests := []struct {
		last Mark
		e    Event
		want Verdict
	}{
		{Mark{}, Event{ID: "e9", Sequence: 9}, Fresh},
		{last, Event{ID: "e6", Sequence: 6}, Fresh},
		{last, Event{ID: "e5", Sequence: 5}, Duplicate},
		{last, Event{ID: "other", Sequence: 5}, Stale},
		{last, Event{ID: "e4", Sequence: 4}, Stale},
		{last, Event{ID: "e7", Sequence: 7}, Gap},
		{last, Event{ID: "e5"}, Duplicate},
		{last, Event{ID: "x", AggregateVersion: 2}, Stale},
		{last, Event{ID: "x", AggregateVersion: 3}, Fresh},
		{last, Event{ID: "x"}, Fresh},
	}
	for _, tt := range tests {
		if got := Judge(tt.last, &tt.e); got != tt.want {
			t.Errorf("Judge(%+v, %+v) = %v, want %v", tt.last, tt.e, got, tt.want)
		}
	}
}

func TestMemoryInboxForgetsTheOldest(t *testing.T) {
	b := NewMemoryInbox(2)
	for i, key := range []string{"a", "b", "a", "c"} {
		if err := b.Record(t.Context(), key, Mark{Sequence: int64(i + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Record(t.Context(), "a", Mark{Sequence: 2}); err != nil { // back: left out
		t.Fatal(err)
	}
	for key, want := range map[string]int64{"a": 3, "b": 0, "c": 4} {
		if m, _ := b.Last(t.Context(), key); m.Sequence != want {
			t.Errorf("mark of %s is %d, want %d", key, m.Sequence, want)
		}
	}
}

func TestOptionsReportAllFaults(t *testing.T) {
	_, err := New(nil, "", "", nil, &Options{Sessions: -1, SessionIdle: -1})
	for _, part := range []string{"client", "name", "handler", "Sessions", "times"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v does not name %s", err, part)
		}
	}
}
