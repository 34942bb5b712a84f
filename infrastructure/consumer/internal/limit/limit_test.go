package limit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// wait waits as a client of a silent store does.
func wait(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestOperationEndsAfterItsLimit(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			ctx, l := Start(t.Context(), after)
			err := l.End(wait(ctx))
			want := after
			if after == 0 {
				want = Default
			}
			if took := time.Since(began); took != want || !errors.Is(err, ErrSilent) || errors.Is(err, context.Canceled) {
				t.Errorf("error %v after %v, want ErrSilent after %v", err, took, want)
			}
		})
	}
}

// A handler may take longer than the store. The limit begins again after it.
func TestHandlerIsNotLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, l := Start(t.Context(), time.Second)
		if err := l.Suspend(func() error { time.Sleep(time.Hour); return ctx.Err() }); err != nil {
			t.Errorf("the context of the handler ended: %v", err)
		}
		began := time.Now()
		if err := l.End(wait(ctx)); !errors.Is(err, ErrSilent) || time.Since(began) != time.Second {
			t.Errorf("error %v after %v, want ErrSilent after a second", err, time.Since(began))
		}
	})
}

func TestEndReturnsTheErrorOfTheCaller(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	ctx, l := Start(parent, time.Hour)
	cancel()
	if err := l.End(wait(ctx)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the caller's context", err)
	}
}
