package shared

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// thing is the shared resource of these tests.
type thing struct{ closed bool }

// newResource returns a resource that takes a second to open, and fails while down is set.
func newResource(opened *int, down *bool) *Resource[thing] {
	return New(func(ctx context.Context) (*thing, error) {
		*opened++
		timer := time.NewTimer(time.Second)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if *down {
			return nil, errors.New("unavailable")
		}
		return new(thing), nil
	}, func(_ context.Context, t *thing) error { t.closed = true; return nil })
}

// Concurrent callers open a resource once, and all of them get the same error.
func TestConcurrentCallersOpenItOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened, down := 0, true
		s := newResource(&opened, &down)
		try := func() {
			results := make(chan error)
			for range 50 {
				go func() {
					got, err := s.Get(t.Context())
					if (got == nil) != (err != nil) {
						t.Errorf("got %v with error %v", got, err)
					}
					results <- err
				}()
			}
			for range 50 {
				if err := <-results; (err != nil) != down {
					t.Errorf("error %v, want one: %v", err, down)
				}
			}
		}
		try()
		if opened != 1 {
			t.Errorf("%d failed attempts, want one", opened)
		}
		down = false
		try()
		if opened != 2 {
			t.Errorf("%d attempts in total, want two", opened)
		}
	})
}

func TestCanceledCallerFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened, down := 0, false
		s := newResource(&opened, &down)
		ctx, cancel := context.WithCancel(t.Context())
		canceled, other := make(chan error), make(chan error)
		go func() { _, err := s.Get(ctx); canceled <- err }()
		synctest.Wait()
		go func() { _, err := s.Get(t.Context()); other <- err }()
		synctest.Wait() // the other caller waits for the first
		cancel()
		if err := <-canceled; !errors.Is(err, context.Canceled) {
			t.Errorf("the canceled caller: %v", err)
		}
		if err := <-other; err != nil {
			t.Errorf("the other caller: %v", err)
		}
	})
}

func TestGetOpensANewResourceAfterDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened, down := 0, false
		s := newResource(&opened, &down)
		first, _ := s.Get(t.Context())
		s.Drop(t.Context(), first)
		s.Drop(t.Context(), first) // by another caller that saw its end
		second, _ := s.Get(t.Context())
		s.Drop(t.Context(), first) // by a caller that saw its end late
		third, err := s.Get(t.Context())
		if err != nil || second == first || third != second || !first.closed || second.closed {
			t.Errorf("%v, %v, %v, %v; want the second kept, and the first closed", first, second, third, err)
		}
		if err := s.Close(t.Context()); err != nil || !second.closed {
			t.Errorf("close: %v, %v", err, second)
		}
		if _, err := s.Get(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v, want ErrClosed", err)
		}
	})
}

// While a caller waits for its turn, another one may open the resource and drop it again. The waiting
// caller opens a new one, and does not return the error of an earlier attempt.
func TestWaitingCallerOpensADroppedResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened, down := 0, true
		s := newResource(&opened, &down)
		if _, err := s.Get(t.Context()); err == nil {
			t.Error("opened an unavailable resource")
		}
		down = false
		if it, err := s.Get(t.Context()); err != nil {
			t.Error(err)
		} else {
			s.Drop(t.Context(), it)
		}
		if err := s.lock(t.Context()); err != nil { // as a caller that opens it
			t.Fatal(err)
		}
		got := make(chan *thing)
		go func() {
			it, err := s.Get(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- it
		}()
		synctest.Wait()   // it waits for its turn
		s.attempts.Add(1) // another caller opened it and dropped it
		s.unlock()
		if it := <-got; it == nil || opened != 3 {
			t.Errorf("got %v after %d attempts", it, opened)
		}
	})
}

// GetLive replaces a resource that has ended once, even if the new one has ended as well.
func TestGetLiveReplacesAnEndedResourceOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened, down, dead := 0, false, false
		s := newResource(&opened, &down)
		get := func(want int) *thing {
			t.Helper()
			got, err := s.GetLive(t.Context(), func(*thing) bool { return dead })
			if err != nil || opened != want {
				t.Fatalf("opened %d times, want %d; %v", opened, want, err)
			}
			return got
		}
		first := get(1)
		if get(1) != first {
			t.Error("replaced a live resource")
		}
		dead = true
		if second := get(2); second == first || second.closed || !first.closed {
			t.Error("the ended resource was returned or not closed")
		}
	})
}
