package changefeed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memstore"
)

// The window also ends while a renewal hangs that ignores its context.
func TestTrustWindowBeginsBeforeTheAcquisition(t *testing.T) {
	for _, hang := range []time.Duration{0, time.Minute} {
		t.Run(fmt.Sprintf("renewals hang for %s", hang), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { trustBeginsBeforeTheAcquisition(t, hang) })
		})
	}
}

func trustBeginsBeforeTheAcquisition(t *testing.T, hang time.Duration) {
	w := newWorld(t, 1)
	var late, down atomic.Bool
	var landed, fenced atomic.Int64
	w.store = memstore.New(&memstore.Options{Before: func(_ context.Context, op memstore.Op) error {
		if op.Kind == memstore.Replace && down.Load() {
			time.Sleep(hang)
			return errCut
		}
		return nil
	}, After: func(ctx context.Context, op memstore.Op) error {
		if op.Kind == memstore.Replace && late.Swap(false) {
			landed.Store(time.Now().UnixNano()) // it took effect; the answer takes its time
			return pause(ctx, 4*time.Second)
		}
		return nil
	}})
	first := w.start("first", nil, nil)
	eventually(t, 10*time.Second, "the lease exists", func() bool { return w.owners()["first"] == 1 })
	first.stop()
	w.put(1, 1)
	late.Store(true)
	acquired := make(chan struct{})
	w.start("a", changefeed.HandlerFunc(func(ctx context.Context, _ *changefeed.Batch) error {
		<-ctx.Done()
		fenced.CompareAndSwap(0, time.Now().UnixNano())
		return ctx.Err()
	}), &changefeed.Options{HandlerTimeout: -1, Observer: &changefeed.Observer{
		LeaseAcquired: func(changefeed.LeaseAcquired) { close(acquired) },
	}})
	<-acquired
	down.Store(true)
	eventually(t, time.Minute, "fenced", func() bool { return fenced.Load() > 0 })
	if d := time.Duration(fenced.Load() - landed.Load()); landed.Load() == 0 || d > 18*time.Second {
		t.Errorf("the handler ran until %s after the acquisition took effect, want at most Expiry - Margin = 18 s", d)
	}
}

// The renewal is aborted while another one can still save the lease.
func TestHangingRenewalCostsNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var hangs atomic.Bool
		w.store = memstore.New(&memstore.Options{Before: func(ctx context.Context, op memstore.Op) error {
			if op.Kind != memstore.Replace || !hangs.Swap(false) {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}})
		var lost atomic.Int32
		w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{LeaseLost: func(changefeed.LeaseLost) { lost.Add(1) }}})
		eventually(t, 10*time.Second, "the lease exists", func() bool { return w.owners()["a"] == 1 })
		hangs.Store(true)
		time.Sleep(time.Minute)
		if hangs.Load() || lost.Load() != 0 {
			t.Errorf("lost %d leases, want none; a renewal hung: %v", lost.Load(), !hangs.Load())
		}
	})
}

func TestSuspensionDuringRenewalNeedsAnotherRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var ahead atomic.Int64
		var suspended, doubtful atomic.Int32
		w.store = memstore.New(&memstore.Options{Before: func(_ context.Context, op memstore.Op) error {
			if op.Kind == memstore.Replace && suspended.Add(-1) >= 0 {
				ahead.Add(int64(10 * time.Minute))
			}
			return nil
		}})
		w.got.before = func(ctx context.Context, _ *changefeed.Batch) error {
			if ctx.Err() != nil {
				doubtful.Add(1)
			}
			return ctx.Err()
		}
		w.start("a", nil, &changefeed.Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		suspended.Store(3)
		ahead.Add(int64(10 * time.Minute))
		w.put(1, 1)
		eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == 1 })
		if suspended.Load() > 0 || doubtful.Load() > 0 {
			t.Errorf("%d calls were begun in doubt; %d suspensions are to come", doubtful.Load(), suspended.Load())
		}
	})
}

func TestRenewalIsDueAfterItsRequestNotItsReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var slow atomic.Bool
		var mu sync.Mutex
		var sent []time.Time
		w.store = memstore.New(&memstore.Options{Before: func(_ context.Context, op memstore.Op) error {
			if slow.Load() && op.Kind == memstore.Replace {
				mu.Lock()
				defer mu.Unlock()
				sent = append(sent, time.Now())
			}
			return nil
		}, After: func(ctx context.Context, op memstore.Op) error {
			if slow.Load() && op.Kind == memstore.Replace {
				return pause(ctx, 4*time.Second)
			}
			return nil
		}})
		w.start("a", nil, nil)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		slow.Store(true)
		time.Sleep(2 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		for i := 1; i < len(sent); i++ {
			if d := sent[i].Sub(sent[i-1]); d > 8*time.Second*12/10 {
				t.Errorf("a renewal %s after the one before, want at most Renew = 8 s, and a fifth", d)
			}
		}
		if len(sent) < 10 {
			t.Errorf("%d renewals in two minutes", len(sent))
		}
	})
}

// The caller gets the cause, whatever context it waits with.
func TestCheckpointCallEndsWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		result := make(chan error, 1)
		var a *host
		a = w.start("a", changefeed.Manual(func(ctx context.Context, _ *changefeed.Batch, checkpoint changefeed.Checkpoint) error {
			a.link.noStore.Store(true)
			own, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Minute)
			defer cancel()
			err := checkpoint(own)
			a.link.noStore.Store(false)
			select {
			case result <- err:
			default:
			}
			return err
		}), nil)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		time.Sleep(time.Second)
		w.put(1, 1)
		if err := <-result; !errors.Is(err, changefeed.ErrFenced) {
			t.Errorf("the checkpoint ended with %v, want ErrFenced", err)
		}
	})
}

func TestOwnersWriteKeepsForeignMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.start("a", nil, nil)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		record, err := w.store.Read(t.Context(), w.leases()[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := json.Unmarshal(record.Body, &doc); err != nil {
			t.Fatal(err)
		}
		doc["note"] = "theirs"
		doc["properties"].(map[string]any)["mark"] = "theirs, too"
		if record.Body, err = json.Marshal(doc); err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.Replace(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		w.put(1, 1)
		eventually(t, time.Minute, "written by its owner", func() bool { return w.stored(1) })
		if record, err = w.store.Read(t.Context(), record.ID); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"note":"theirs"`, `"mark":"theirs, too"`} {
			if !strings.Contains(string(record.Body), want) {
				t.Errorf("the record lacks %s: %s", want, record.Body)
			}
		}
	})
}
