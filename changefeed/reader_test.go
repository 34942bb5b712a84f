package changefeed_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed/memfeed"

	"feedbox/changefeed"
)

// script is a feed with scripted replies: read gets the number of the call.
type script struct {
	changefeed.Feed
	calls atomic.Int64
	from  atomic.Pointer[string] // the continuation of the last read
	read  func(ctx context.Context, call int64) (*changefeed.Page, error)
}

func (s *script) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	s.from.Store(&req.Continuation)
	return s.read(ctx, s.calls.Add(1))
}

// change returns a page with one document.
func change(lsn int64, key string) *changefeed.Page {
	return &changefeed.Page{Continuation: fmt.Sprintf("%q", fmt.Sprint("page-", lsn)), Items: []changefeed.Item{
		{Raw: fmt.Appendf(nil, `{"id":"doc-%d"}`, lsn), Key: []byte(key), LSN: lsn, Timestamp: lsn * 10},
	}}
}

var errRead = errors.New("the feed cannot be read")

func TestSuccessfulReadResetsTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var last atomic.Int64
		feed := &script{Feed: w.feed, read: func(_ context.Context, call int64) (*changefeed.Page, error) {
			if call != 11 {
				return nil, errRead
			}
			return change(1, "k"), nil
		}}
		stop := w.run(feed, w.got, &changefeed.Options{Observer: &changefeed.Observer{ReadFailed: func(e changefeed.ReadFailed) {
			if feed.calls.Load() == 12 {
				last.Store(int64(e.Pause))
			}
		}}})
		eventually(t, 10*time.Minute, "failed again", func() bool { return last.Load() > 0 })
		if d := time.Duration(last.Load()); d > 200*time.Millisecond {
			t.Errorf("a pause of %s after the first failure", d)
		}
		stop()
	})
}

// Cosmos DB documents have an _lsn, but a feed may not know it. Nothing is known to be done before such a change.
func TestChangeWithoutLSNIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		feed := &script{Feed: w.feed, read: func(_ context.Context, call int64) (*changefeed.Page, error) {
			if call > 1 {
				return &changefeed.Page{Continuation: `"page-0"`, CaughtUp: true}, nil
			}
			return change(0, "k"), nil
		}}
		stop := w.run(feed, w.got, &changefeed.Options{})
		eventually(t, time.Minute, "the checkpoint has moved", func() bool { l := w.leases(); return len(l) == 1 && l[0].Continuation == `"page-0"` })
		if n := w.got.count(); n != 1 {
			t.Errorf("the checkpoint is after a change that was delivered %d times", n)
		}
		stop()
	})
}

// The session has ended by the time the page arrives.
func TestLatePageIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var released atomic.Int32
		feed := &script{Feed: w.feed, read: func(ctx context.Context, _ int64) (*changefeed.Page, error) {
			<-ctx.Done()
			page := change(1, "k")
			page.Release = func() { released.Add(1) }
			return page, nil
		}}
		stop := w.run(feed, w.got, &changefeed.Options{})
		eventually(t, time.Minute, "reading", func() bool { return feed.calls.Load() == 1 })
		stop()
		if released.Load() != 1 || w.got.count() != 0 {
			t.Errorf("released %d times, %d documents delivered", released.Load(), w.got.count())
		}
	})
}

// stopped runs a range that the poison policy stops during a read, which then replies. It
// returns the lease some seconds later.
func stopped(t *testing.T, reply func() (*changefeed.Page, error)) changefeed.Lease {
	t.Helper()
	w := newWorld(t, 1)
	reading, done := make(chan struct{}), make(chan struct{})
	feed := &script{Feed: w.feed, read: func(ctx context.Context, call int64) (*changefeed.Page, error) {
		switch call {
		case 1:
			return change(1, "k"), nil
		case 2:
			close(reading)
		}
		select {
		case <-done:
			return reply()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	stop := w.run(feed, changefeed.Each(func(context.Context, changefeed.Item) error {
		<-reading // otherwise the range may stop before that read
		return changefeed.Refuse(errNotNow)
	}), &changefeed.Options{Poison: changefeed.PoisonStop, MaxAttempts: 1, PollMin: time.Millisecond})
	eventually(t, time.Minute, "stopped", func() bool {
		leases := w.leases()
		return len(leases) == 1 && leases[0].Health == changefeed.Stopped
	})
	close(done)
	time.Sleep(20 * time.Second)
	lease := w.leases()[0]
	stop()
	return lease
}

func TestFailedReadDoesNotHideAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := stopped(t, func() (*changefeed.Page, error) { return nil, fmt.Errorf("%w: %w", errRead, changefeed.ErrPermanent) })
		if lease.Health != changefeed.Stopped || lease.Failures == 0 {
			t.Errorf("health %q, %d failures; want stopped", lease.Health, lease.Failures)
		}
	})
}

func TestStoppedRangeReleasesPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var released atomic.Int32
		stopped(t, func() (*changefeed.Page, error) {
			page := change(2, "k")
			page.Release = func() { released.Add(1) }
			return page, nil
		})
		if released.Load() != 1 {
			t.Errorf("the page was released %d times", released.Load())
		}
	})
}

// The checkpoint passes several pages at once, and LSNs may decrease after a merge.
func TestCheckpointHasTheHighestLSN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		feed := &script{Feed: w.feed, read: func(_ context.Context, call int64) (*changefeed.Page, error) {
			switch call {
			case 1:
				return change(9, "slow"), nil
			case 2:
				return change(7, "quick"), nil
			}
			return &changefeed.Page{CaughtUp: true}, nil
		}}
		tries := 0
		stop := w.run(feed, changefeed.Each(func(_ context.Context, item changefeed.Item) error {
			if string(item.Key) == "slow" {
				if tries++; tries < 8 {
					return errNotNow
				}
			}
			return nil
		}), &changefeed.Options{})
		eventually(t, time.Minute, "both are behind the checkpoint", func() bool {
			leases := w.leases()
			return len(leases) == 1 && leases[0].Continuation == `"page-7"`
		})
		if l := w.leases()[0]; l.LSN != 9 || l.ChangeTime != 90 {
			t.Errorf("LSN %d of %d, want 9 of 90", l.LSN, l.ChangeTime)
		}
		stop()
	})
}

func TestDeliveredNeverDecreases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		feed := &script{Feed: w.feed, read: func(_ context.Context, call int64) (*changefeed.Page, error) {
			switch call {
			case 1:
				return change(9, "k"), nil
			case 2:
				return change(7, "k"), nil
			}
			return &changefeed.Page{CaughtUp: true}, nil
		}}
		stop := w.run(feed, w.got, &changefeed.Options{})
		eventually(t, time.Minute, "handled", func() bool { return w.got.count() == 2 })
		stop()
		if l := w.leases()[0]; l.Delivered != 9 || l.Handled != 2 {
			t.Errorf("the lease has LSN %d and %d documents, want 9 and 2", l.Delivered, l.Handled)
		}
	})
}

// Page.Doubt is reported too.
func TestReadsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		feed := &script{Feed: w.feed, read: func(_ context.Context, call int64) (*changefeed.Page, error) {
			time.Sleep(20 * time.Millisecond)
			switch call {
			case 1:
				return nil, errRead
			case 2:
				page := change(1, "k")
				page.Bytes, page.CaughtUp, page.RequestCharge, page.Doubt = 77, true, 2.5, errNotNow
				return page, nil
			}
			return &changefeed.Page{}, nil
		}}
		var reads []changefeed.PageRead
		var failed []changefeed.ReadFailed
		var doubts []changefeed.LeaseError
		stop := w.run(feed, w.got, &changefeed.Options{Observer: &changefeed.Observer{
			PageRead:   func(e changefeed.PageRead) { reads = append(reads, e) },
			ReadFailed: func(e changefeed.ReadFailed) { failed = append(failed, e) },
			LeaseError: func(e changefeed.LeaseError) { doubts = append(doubts, e) },
		}})
		eventually(t, time.Minute, "read", func() bool { return feed.calls.Load() > 3 })
		stop()
		lease := w.leases()[0]
		ref := changefeed.LeaseRef{Lease: lease.ID, Range: lease.Range, Epoch: 1, History: lease.History}
		want := changefeed.PageRead{LeaseRef: ref, Items: 1, Bytes: 77, CaughtUp: true, RequestCharge: 2.5, Took: 20 * time.Millisecond}
		if len(reads) < 1 || reads[0] != want {
			t.Errorf("reported %+v, want %+v first", reads, want)
		}
		if len(failed) != 1 || failed[0].LeaseRef != ref || !errors.Is(failed[0].Err, errRead) || failed[0].Pause <= 0 {
			t.Errorf("reported %+v, want one failure of %+v", failed, ref)
		}
		if doubt := (changefeed.LeaseError{Lease: lease.ID, Op: changefeed.OpCheckFeed, Err: errNotNow}); len(doubts) != 1 || doubts[0] != doubt {
			t.Errorf("reported %+v, want %+v", doubts, doubt)
		}
	})
}

func TestEmptyPageIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var lent atomic.Int32
		feed := &script{Feed: w.feed, read: func(context.Context, int64) (*changefeed.Page, error) {
			lent.Add(1)
			return &changefeed.Page{CaughtUp: true, Release: func() { lent.Add(-1) }}, nil
		}}
		stop := w.run(feed, w.got, &changefeed.Options{})
		time.Sleep(time.Minute)
		if stop(); lent.Load() != 0 || feed.calls.Load() < 10 {
			t.Errorf("%d of %d pages were not released", lent.Load(), feed.calls.Load())
		}
	})
}

// Pages with only other ranges' changes are read without a pause. A document is delivered
// even if the position does not move. A page without a position leaves it where it was.
func TestEmptyPagesAreReadThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var first, last time.Time
		feed := &script{Feed: w.feed, read: func(_ context.Context, call int64) (*changefeed.Page, error) {
			switch {
			case call == 1:
				first = time.Now()
			case call == 100:
				last = time.Now()
				page := change(call, "k")
				page.Continuation = `"page-99"` // where it was
				return page, nil
			case call > 100:
				return &changefeed.Page{CaughtUp: true}, nil
			}
			return &changefeed.Page{Continuation: fmt.Sprintf("%q", fmt.Sprint("page-", call))}, nil
		}}
		stop := w.run(feed, w.got, &changefeed.Options{})
		eventually(t, time.Minute, "delivered, and read again", func() bool { return w.got.count() == 1 && feed.calls.Load() >= 102 })
		if stop(); last.Sub(first) > 0 {
			t.Errorf("99 empty pages took %s", last.Sub(first))
		}
		if from := *feed.from.Load(); from != `"page-99"` {
			t.Errorf("read %d begins at %s", feed.calls.Load(), from)
		}
	})
}

// A new range is read every PollMin, and less often the longer it has no changes.
func TestPollingStartsFastAndSlowsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var reads []time.Time
		feed := &script{Feed: w.feed, read: func(context.Context, int64) (*changefeed.Page, error) {
			reads = append(reads, time.Now())
			return &changefeed.Page{CaughtUp: true}, nil
		}}
		stop := w.run(feed, w.got, &changefeed.Options{PollBusy: time.Millisecond, PollMin: 100 * time.Millisecond})
		time.Sleep(50 * time.Second)
		stop()
		for i := range 5 {
			if d := reads[i+1].Sub(reads[i]); d < 80*time.Millisecond || d > 120*time.Millisecond {
				t.Errorf("pause %d is %s, want some 100 ms", i, d)
			}
		}
		if d := reads[len(reads)-1].Sub(reads[len(reads)-2]); d < 3*time.Second || d > 6*time.Second {
			t.Errorf("after 50 s without a change the pause is %s, want a tenth of that", d)
		}
	})
}

// A lease that changes hands again and again would otherwise be read every PollMin each time.
func TestNextOwnerPollsAsTheFormerWould(t *testing.T) {
	for silence, want := range map[time.Duration]time.Duration{0: 100 * time.Millisecond, 40 * time.Second: 400 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			w.put(1, 1)
			before := w.start("before", nil, nil)
			eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == 1 })
			time.Sleep(silence)
			before.stop()
			var reads []time.Time
			feed := &script{Feed: w.feed, read: func(context.Context, int64) (*changefeed.Page, error) {
				reads = append(reads, time.Now())
				return &changefeed.Page{CaughtUp: true}, nil
			}}
			stop := w.run(feed, w.got, &changefeed.Options{PollMin: 100 * time.Millisecond})
			time.Sleep(10 * time.Second)
			stop()
			if d := reads[5].Sub(reads[0]) / 5; d < want*7/10 || d > want*2 {
				t.Errorf("%s after a change the next owner pauses for %s, want some %s", silence, d, want)
			}
		})
	}
}

// A range that failed under another owner is healthy once nothing is left that could fail,
// but not while more changes are known to exist.
func TestInheritedFailureEndsWhenCaughtUp(t *testing.T) {
	for _, left := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			fail := changefeed.HandlerFunc(func(context.Context, *changefeed.Batch) error { return errNotNow })
			w.put(1, 1)
			before := w.start("before", fail, nil)
			eventually(t, time.Minute, "a failure", func() bool { l := w.leases(); return len(l) == 1 && l[0].Health == changefeed.Retrying })
			before.stop()
			feed := &script{Feed: w.feed, read: func(_ context.Context, call int64) (*changefeed.Page, error) {
				switch {
				case !left:
					return &changefeed.Page{CaughtUp: true}, nil // it was deleted
				case call == 1:
					return &changefeed.Page{Continuation: `"page-1"`}, nil
				case call == 2:
					return change(2, "k"), nil
				}
				return &changefeed.Page{CaughtUp: true}, nil
			}}
			recovered := 0
			stop := w.run(feed, fail, &changefeed.Options{Observer: &changefeed.Observer{
				RangeRecovered: func(changefeed.RangeRecovered) { recovered++ },
			}})
			time.Sleep(time.Minute)
			well := w.leases()[0].Health == changefeed.Healthy
			if stop(); well == left || (recovered > 0) == left {
				t.Errorf("something is left: %t; healthy %t, %d recoveries reported", left, well, recovered)
			}
		})
	}
}

// A range whose reads fail is unread, whatever the error. It is stuck if that lasts until an operator
// acts.
func TestOnlyPermanentReadErrorsMakeTheRangeStuck(t *testing.T) {
	for _, lasting := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			err := errRead
			if lasting {
				err = fmt.Errorf("%w: %w", errRead, changefeed.ErrPermanent)
			}
			stuck := 0
			stop := w.run(&script{Feed: w.feed, read: func(context.Context, int64) (*changefeed.Page, error) { return nil, err }}, w.got,
				&changefeed.Options{Observer: &changefeed.Observer{RangeStuck: func(changefeed.RangeStuck) { stuck++ }}})
			time.Sleep(5 * time.Minute)
			lease := w.leases()[0]
			if stop(); lease.Health != changefeed.Unread || !strings.Contains(lease.Error, errRead.Error()) || (stuck > 0) != lasting {
				t.Errorf("lasting %t: health %q, reported %d times that it is stuck", lasting, lease.Health, stuck)
			}
		})
	}
}

func TestPageReadReportsDurationOfRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.feed = memfeed.New(&memfeed.Options{Before: func(context.Context, changefeed.ReadRequest) error {
			time.Sleep(3 * time.Second)
			return nil
		}})
		var took atomic.Int64
		w.put(1, 1)
		w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{PageRead: func(e changefeed.PageRead) { took.Store(int64(e.Took)) }}})
		eventually(t, time.Minute, "the document", func() bool { return w.got.count() == 1 })
		if d := time.Duration(took.Load()); d != 3*time.Second {
			t.Errorf("reported %s, it took 3 s", d)
		}
	})
}
