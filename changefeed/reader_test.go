package changefeed_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
)

// script is a feed that replies as told: read is given the number of the call.
type script struct {
	changefeed.Feed
	calls atomic.Int64
	read  func(ctx context.Context, call int64) (*changefeed.Page, error)
}

func (s *script) Read(ctx context.Context, _ changefeed.ReadRequest) (*changefeed.Page, error) {
	return s.read(ctx, s.calls.Add(1))
}

// change is a page with one document.
func change(lsn int64, key string) *changefeed.Page {
	return &changefeed.Page{Continuation: fmt.Sprintf("%q", fmt.Sprint("page-", lsn)), Items: []changefeed.Item{
		{Raw: fmt.Appendf(nil, `{"id":"doc-%d"}`, lsn), Key: []byte(key), LSN: lsn, Timestamp: lsn * 10},
	}}
}

var errRead = errors.New("the feed cannot be read")

// A read that succeeds ends what failed before: the next failure has a short pause.
func TestASuccessfulReadResetsThePauses(t *testing.T) {
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
			t.Errorf("a pause of %s behind the first failure", d)
		}
		stop()
	})
}

// A page that comes when nobody wants it any more gives its memory back.
func TestALatePageIsGivenBack(t *testing.T) {
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

// stopped runs a range that the policy stops while a read is under way, which replies
// as told afterwards; and returns its lease some seconds later.
func stopped(t *testing.T, reply func() (*changefeed.Page, error)) changefeed.Lease {
	t.Helper()
	w := newWorld(t, 1)
	done := make(chan struct{})
	feed := &script{Feed: w.feed, read: func(ctx context.Context, call int64) (*changefeed.Page, error) {
		if call == 1 {
			return change(1, "k"), nil
		}
		select {
		case <-done:
			return reply()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	stop := w.run(feed, changefeed.Each(func(context.Context, changefeed.Item) error {
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

func TestAFailedReadDoesNotHideAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := stopped(t, func() (*changefeed.Page, error) { return nil, fmt.Errorf("%w: %w", errRead, changefeed.ErrPermanent) })
		if lease.Health != changefeed.Stopped || lease.Failures == 0 {
			t.Errorf("health %q, %d failures; want stopped", lease.Health, lease.Failures)
		}
	})
}

func TestAStoppedRangeGivesPagesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var released atomic.Int32
		stopped(t, func() (*changefeed.Page, error) {
			page := change(2, "k")
			page.Release = func() { released.Add(1) }
			return page, nil
		})
		if released.Load() != 1 {
			t.Errorf("the page was given back %d times", released.Load())
		}
	})
}

// The lease tells the highest LSN among the pages that the checkpoint passes at once,
// wherever it stands: behind a merge LSNs may go down.
func TestTheCheckpointTellsTheHighestLSN(t *testing.T) {
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

// What a lease tells of the changes handled does not go back.
func TestTheLeaseTellsTheHighestChangeHandled(t *testing.T) {
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
			t.Errorf("the lease tells LSN %d and %d documents, want 9 and 2", l.Delivered, l.Handled)
		}
	})
}

// lagOf runs a range whose first reads reply as told and returns its lag some seconds
// later. The last read replies to all that follow, too.
func lagOf(t *testing.T, replies ...func() (*changefeed.Page, error)) changefeed.RangeLag {
	t.Helper()
	w := newWorld(t, 1)
	feed := &script{Feed: w.feed, read: func(_ context.Context, call int64) (*changefeed.Page, error) {
		return replies[min(int(call), len(replies))-1]()
	}}
	p, err := changefeed.New(feed, w.store, w.got, &changefeed.Options{Host: "a"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	eventually(t, time.Minute, "read", func() bool { return int(feed.calls.Load()) > len(replies) })
	lags := p.Lag()
	cancel()
	if err := <-ended; err != nil || len(lags) != 1 {
		t.Fatalf("lags %+v, error %v", lags, err)
	}
	return lags[0]
}

// The lag of a range that cannot be read is not known, until it can.
func TestTheLagOfAnUnreadableRangeIsNotKnown(t *testing.T) {
	page := func() (*changefeed.Page, error) { return &changefeed.Page{Continuation: `"1"`, CaughtUp: true}, nil }
	fails := func() (*changefeed.Page, error) { return nil, errRead }
	synctest.Test(t, func(t *testing.T) {
		if lag := lagOf(t, page, fails); lag.Known {
			t.Errorf("%+v of a range that cannot be read", lag)
		}
		if lag := lagOf(t, page, fails, page); !lag.Known {
			t.Errorf("%+v of a range that can be read again", lag)
		}
	})
}

// Once a range is caught up, what the service counted up to then is behind it.
func TestACaughtUpRangeHasNoLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lag := lagOf(t,
			func() (*changefeed.Page, error) {
				return &changefeed.Page{Continuation: `"9"`, EndLSN: 9, CaughtUp: true}, nil
			},
			func() (*changefeed.Page, error) { return &changefeed.Page{Continuation: `"10"`, EndLSN: 10}, nil }, // of documents of others
			func() (*changefeed.Page, error) { return &changefeed.Page{Continuation: `"10"`, EndLSN: 10}, nil })
		if !lag.Known || lag.Transactions != 1 {
			t.Errorf("%+v, want 1 transaction more than where it was caught up", lag)
		}
	})
}

// What a read brought and what it failed with is told as it is, and so is a doubt of the feed.
func TestReadsAreTold(t *testing.T) {
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
		ref := changefeed.LeaseRef{Lease: lease.ID, Range: lease.Range, Epoch: 1}
		want := changefeed.PageRead{LeaseRef: ref, Items: 1, Bytes: 77, CaughtUp: true, RequestCharge: 2.5, Took: 20 * time.Millisecond}
		if len(reads) < 1 || reads[0] != want {
			t.Errorf("told of %+v, want %+v first", reads, want)
		}
		if len(failed) != 1 || failed[0].LeaseRef != ref || !errors.Is(failed[0].Err, errRead) || failed[0].Pause <= 0 {
			t.Errorf("told of %+v, want one failure of %+v", failed, ref)
		}
		if doubt := (changefeed.LeaseError{Lease: lease.ID, Op: changefeed.OpCheckFeed, Err: errNotNow}); len(doubts) != 1 || doubts[0] != doubt {
			t.Errorf("told of %+v, want %+v", doubts, doubt)
		}
	})
}

// A page that brings nothing new is given back.
func TestAnEmptyPageIsGivenBack(t *testing.T) {
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
			t.Errorf("%d of %d pages were not given back", lent.Load(), feed.calls.Load())
		}
	})
}

// Pages of what others wrote are read through without a pause. A document is delivered
// whatever the feed says of the position.
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
		eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == 1 })
		if stop(); last.Sub(first) > 0 {
			t.Errorf("99 empty pages took %s", last.Sub(first))
		}
	})
}

// A range is expected to have changes when it is begun: it is read each PollMin, and the
// more rarely the longer there are none.
func TestPollingBegins(t *testing.T) {
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
		if d := reads[len(reads)-1].Sub(reads[len(reads)-2]); d < 380*time.Millisecond || d > 620*time.Millisecond {
			t.Errorf("after 50 s without a change the pause is %s, want some 500 ms", d)
		}
	})
}

// A range that failed with another owner is well once nothing is left that could fail, and
// not while more is known to come.
func TestAnInheritedFailureEnds(t *testing.T) {
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
				t.Errorf("something is left: %t; healthy %t, %d recoveries told", left, well, recovered)
			}
		})
	}
}

// A range that cannot be read is unwell if time will not mend it.
func TestOnlyLastingReadErrorsAreTrouble(t *testing.T) {
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
			if stop(); (lease.Health == changefeed.Retrying) != lasting || (stuck > 0) != lasting {
				t.Errorf("lasting %t: health %q, told %d times that it is stuck", lasting, lease.Health, stuck)
			}
		})
	}
}
