package shared

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// thing is what is shared in these tests.
type thing struct{ closed bool }

// openings returns a Shared that takes a second to open, and fails while down is set.
func openings(opened *int, down *bool) *Shared[thing] {
	return NewShared(func(ctx context.Context) (*thing, error) {
		*opened++
		timer := time.NewTimer(time.Second)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if *down {
			return nil, errors.New("nobody answers")
		}
		return new(thing), nil
	}, func(_ context.Context, t *thing) error { t.closed = true; return nil })
}

// Many who need it at a time open it once, and one failure is that of all who waited.
func TestManyOpenItOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened, down := 0, true
		s := openings(&opened, &down)
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
			t.Errorf("tried %d times while it failed, want once", opened)
		}
		down = false
		try()
		if opened != 2 {
			t.Errorf("opened %d times in all, want once more", opened)
		}
	})
}

func TestWhoGivesUpFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened, down := 0, false
		s := openings(&opened, &down)
		ctx, giveUp := context.WithCancel(t.Context())
		gaveUp, other := make(chan error), make(chan error)
		go func() { _, err := s.Get(ctx); gaveUp <- err }()
		synctest.Wait()
		go func() { _, err := s.Get(t.Context()); other <- err }()
		synctest.Wait() // the other waits for this one
		giveUp()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up: %v", err)
		}
		if err := <-other; err != nil {
			t.Errorf("the other failed too: %v", err)
		}
	})
}

func TestWhatIsDroppedIsOpenedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened, down := 0, false
		s := openings(&opened, &down)
		first, _ := s.Get(t.Context())
		s.Drop(t.Context(), first)
		s.Drop(t.Context(), first) // by another who noticed
		second, _ := s.Get(t.Context())
		s.Drop(t.Context(), first) // by one who noticed late
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

// Who waited for another's try, and finds that what it opened was dropped again meanwhile,
// opens another, whatever failed before that.
func TestWhatWasDroppedBeforeItsTurnIsOpenedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened, down := 0, true
		s := openings(&opened, &down)
		if _, err := s.Get(t.Context()); err == nil {
			t.Error("opened, though nobody answers")
		}
		down = false
		if it, err := s.Get(t.Context()); err != nil {
			t.Error(err)
		} else {
			s.Drop(t.Context(), it)
		}
		if err := s.lock(t.Context()); err != nil { // as the one who opens it
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
		synctest.Wait() // it waits for its turn
		s.tries.Add(1)  // it was opened, and dropped by one who found it broken
		s.unlock()
		if it := <-got; it == nil || opened != 3 {
			t.Errorf("got %v after %d tries", it, opened)
		}
	})
}

// What has ended is opened anew, once: of a broker that ends each connection, its use tells.
func TestWhatHasEndedIsOpenedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened, down, dead := 0, false, false
		s := openings(&opened, &down)
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
			t.Error("opened anew while it lives")
		}
		dead = true
		if second := get(2); second == first || second.closed || !first.closed {
			t.Error("what has ended is returned or left open")
		}
	})
}
