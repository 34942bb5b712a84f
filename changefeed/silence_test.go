package changefeed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memstore"
)

// mute is a feed that can stop replying.
type mute struct {
	changefeed.Feed
	silent atomic.Bool
}

func (f *mute) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	if f.silent.Load() {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return f.Feed.Read(ctx, req)
}

// unread records reports of ranges that are not read.
type unread struct {
	mu     sync.Mutex
	events []changefeed.RangeUnread
}

func (u *unread) observer() *changefeed.Observer {
	return &changefeed.Observer{RangeUnread: func(e changefeed.RangeUnread) {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.events = append(u.events, e)
	}}
}

func (u *unread) all() []changefeed.RangeUnread {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.events
}

// The other host is a spare one, as with one range and two hosts.
func TestSilentReadsMoveTheLeaseToAnotherHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var reports unread
		feed := &mute{Feed: w.feed}
		stop := w.run(feed, w.got, &changefeed.Options{Observer: reports.observer()})
		defer func() { stop() }()
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		w.start("b", nil, nil)
		time.Sleep(10 * time.Minute)
		if n := len(reports.all()); n > 0 {
			t.Fatalf("%d reports while all is well", n)
		}
		feed.silent.Store(true)
		w.put(10, 2)
		took := eventually(t, 2*time.Minute, "delivered", func() bool { return w.got.count() == 10 })
		if o := w.owners(); o["b"] != 1 || took > 75*time.Second {
			t.Errorf("delivered after %s, owners %v", took, o)
		}
		if e := reports.all(); len(e) != 1 || e[0].Owner != "a" || e[0].Epoch != 1 || e[0].For < 45*time.Second || e[0].For > time.Minute || e[0].Err == nil {
			t.Errorf("reported %+v, want it once, within a minute", e)
		}
		time.Sleep(time.Hour)
		if l := w.leases()[0]; l.Owner != "b" || l.Epoch != 2 || l.Health != changefeed.Healthy {
			t.Errorf("an hour later the lease is %+v", l)
		}
	})
}

// The handlers have failed for hours when the reads of a host become silent. That is no reason to keep the range.
func TestSilentReadsMoveTheLeaseOfAFailingHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		failing := changefeed.HandlerFunc(func(context.Context, *changefeed.Batch) error { return errors.New("the broker is down") })
		feeds := map[string]*mute{}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer func() { cancel(); running.Wait() }()
		for _, name := range []string{"a", "b"} {
			feeds[name] = &mute{Feed: w.feed}
			p, err := changefeed.New(feeds[name], w.store, failing, &changefeed.Options{Host: name})
			if err != nil {
				t.Fatal(err)
			}
			running.Go(func() { _ = p.Run(ctx) })
			eventually(t, time.Minute, "owned", func() bool { return w.owners()["a"] == 1 })
		}
		w.put(1, 1)
		for _, hosts := range []string{"ab", "ba"} {
			from, to := hosts[:1], hosts[1:]
			time.Sleep(2 * time.Hour)
			if l := w.leases()[0]; l.Owner != from || l.Health != changefeed.Retrying {
				t.Fatalf("before the silence the lease is %+v", l)
			}
			feeds[from].silent.Store(true)
			if took := eventually(t, time.Hour, "moved", func() bool { return w.owners()[to] == 1 }); took > 75*time.Second {
				t.Errorf("the lease moved from %s to %s after %s", from, to, took)
			}
			feeds[from].silent.Store(false)
		}
	})
}

// The handlers have failed for hours when the lease moves to a host that has never read the feed. It has nothing
// to do with those hours.
func TestSilentHostKeepsNoLeaseForAFormerFailureOfHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		failing := changefeed.HandlerFunc(func(context.Context, *changefeed.Batch) error { return errors.New("the broker is down") })
		first := w.start("first", failing, nil)
		eventually(t, time.Minute, "owned", func() bool { return w.owners()["first"] == 1 })
		w.put(1, 1)
		time.Sleep(2 * time.Hour)
		feed := &mute{Feed: w.feed}
		feed.silent.Store(true)
		stop := w.run(feed, failing, &changefeed.Options{})
		defer stop()
		time.Sleep(time.Minute)
		first.stop()
		eventually(t, time.Minute, "taken by the silent host", func() bool { return w.owners()["a"] == 1 })
		w.start("third", failing, nil)
		if took := eventually(t, 3*time.Hour, "moved", func() bool { return w.owners()["third"] == 1 }); took > 3*time.Minute { // the third host is known after a minute
			t.Errorf("the silent host kept the lease for %s", took)
		}
	})
}

// The lag is unknown, and the owner tries again with a fresh session, at growing intervals.
func TestSilentReadsOfTheOnlyHostAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var reports unread
		feed := &mute{Feed: w.feed}
		p, err := changefeed.New(feed, w.store, w.got, &changefeed.Options{Host: "a", Observer: reports.observer()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		w.put(3, 3)
		eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == 3 })
		last := time.Now()
		feed.silent.Store(true)
		w.put(3, 3)
		for range 60 * 10 {
			time.Sleep(time.Second)
			lag := p.Lag()
			if len(lag) == 1 && lag[0].Known && time.Since(last) > time.Minute {
				t.Fatalf("%s after the last reply the lag is %+v", time.Since(last), lag)
			}
		}
		if lag := p.Lag(); len(lag) != 1 || lag[0].Health != changefeed.Unread || lag[0].Unknown != changefeed.UnknownUnread || !strings.Contains(lag[0].Error, "reply") {
			t.Errorf("the lag is %+v", lag)
		}
		if l, n := w.leases()[0], len(reports.all()); l.Epoch < 3 || l.Epoch > 6 || n < 8 {
			t.Errorf("epoch %d, %d reports after 10 minutes; want some attempts, and a report a minute", l.Epoch, n)
		}
		feed.silent.Store(false)
		eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == 6 })
		eventually(t, time.Minute, "healthy", func() bool { l := p.Lag(); return len(l) == 1 && l[0].Known && l[0].Health == changefeed.Healthy })
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Nothing is due to be read in these ranges.
func TestRangeThatNeedNotBeReadIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		var reports unread
		var stuck atomic.Bool
		slow := changefeed.HandlerFunc(func(ctx context.Context, _ *changefeed.Batch) error {
			for stuck.Load() && ctx.Err() == nil {
				_ = pause(ctx, time.Second)
			}
			return ctx.Err()
		})
		w.start("a", slow, &changefeed.Options{Observer: reports.observer(), MaxItems: 1, ReadAheadItems: 1, HandlerTimeout: -1})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 3 })
		time.Sleep(10 * time.Second)
		if err := w.operator().PauseLeases(t.Context(), w.leases()[0].ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		stuck.Store(true)
		w.put(100, 20) // the windows are full
		time.Sleep(time.Hour)
		stuck.Store(false)
		if err := w.operator().Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if e := reports.all(); len(e) > 0 {
			t.Errorf("reported %+v", e)
		}
		for _, l := range w.leases() {
			if l.Epoch != 1 {
				t.Errorf("lease %s has moved: epoch %d", l.Token, l.Epoch)
			}
		}
	})
}

// The reader of a range ends with its split, so nothing is due to be read in it any more.
func TestSplitRangeWithABusyHandlerIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var reports unread
		var stuck atomic.Bool
		stuck.Store(true)
		w.start("a", changefeed.HandlerFunc(func(ctx context.Context, b *changefeed.Batch) error {
			for stuck.Load() && ctx.Err() == nil {
				_ = pause(ctx, time.Second)
			}
			return w.got.Handle(ctx, b)
		}), &changefeed.Options{Observer: reports.observer(), HandlerTimeout: -1})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		w.put(3, 1)
		time.Sleep(10 * time.Second)
		w.feed.Split("80")
		time.Sleep(10 * time.Minute)
		if e := reports.all(); len(e) > 0 {
			t.Errorf("reported %+v", e)
		}
		stuck.Store(false)
		eventually(t, time.Minute, "handled by the owner of the children", func() bool { return w.got.distinct() == 3 && w.owners()["a"] == 2 })
	})
}

// An error is a reply: another host would get the same. The range is reported all the same.
func TestFailingReadsAreReportedAndKeepTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var reports unread
		stop := w.run(&script{Feed: w.feed, read: func(context.Context, int64) (*changefeed.Page, error) { return nil, errRead }}, w.got,
			&changefeed.Options{Observer: reports.observer()})
		time.Sleep(10 * time.Minute)
		l := w.leases()[0]
		if e := reports.all(); len(e) < 8 || !errors.Is(e[0].Err, errRead) || l.Owner != "a" || l.Epoch != 1 {
			t.Errorf("reported %+v; the lease is %+v", e, l)
		}
		stop()
	})
}

// silentFeed replies to nothing but what is named.
type silentFeed struct {
	changefeed.Feed
	replies string
}

func (f silentFeed) reply(ctx context.Context, request string) error {
	if request == f.replies {
		return nil
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

func (f silentFeed) Source(ctx context.Context) (changefeed.Source, error) {
	if err := f.reply(ctx, "source"); err != nil {
		return changefeed.Source{}, err
	}
	return f.Feed.Source(ctx)
}

func (f silentFeed) Ranges(ctx context.Context) ([]changefeed.FeedRange, error) {
	return nil, f.reply(ctx, "ranges")
}

// A start that hangs would be silent, too.
func TestEveryRequestToTheFeedHasADeadline(t *testing.T) {
	for _, replies := range []string{"", "source"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			var cycles []error
			stop := w.run(silentFeed{w.feed, replies}, w.got, &changefeed.Options{Observer: &changefeed.Observer{
				LeaseError: func(e changefeed.LeaseError) { cycles = append(cycles, e.Err) },
			}})
			time.Sleep(10 * time.Minute)
			if stop(); len(cycles) < 10 || !errors.Is(cycles[0], context.DeadlineExceeded) {
				t.Errorf("replies to %q: errors %v, want one each time the deadline passes", replies, cycles)
			}
			began := time.Now()
			if _, err := changefeed.NewOperator(silentFeed{w.feed, ""}, w.store, nil).Leases(t.Context()); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > time.Minute {
				t.Errorf("the operator's error %v after %s", err, time.Since(began))
			}
		})
	}
}

// Whatever the cause is, a part of the scope without an owner is reported.
func TestRangeWithoutAnOwnerIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		var reports unread
		var denied atomic.Pointer[string]
		w.store = memstore.New(&memstore.Options{Before: func(_ context.Context, op memstore.Op) error {
			if id := denied.Load(); id != nil && op.ID == *id {
				return errCut
			}
			return nil
		}})
		w.start("a", nil, &changefeed.Options{Observer: reports.observer()})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 2 })
		l := w.leases()[0]
		denied.Store(&l.ID) // it can be listed, and not acquired
		time.Sleep(10 * time.Minute)
		e := reports.all()
		if len(e) < 8 || len(e) > 13 || e[0].Lease != l.ID || e[0].Owner != "" || e[0].Err == nil {
			t.Fatalf("reported %+v, want it about once a minute", e)
		}
		if e[0].For > 2*time.Minute || e[len(e)-1].For < 8*time.Minute {
			t.Errorf("reported %s first and %s last, want how long nobody has owned the range", e[0].For, e[len(e)-1].For)
		}
	})
}

func TestUnreadRangeIsLogged(t *testing.T) {
	var out bytes.Buffer
	o := changefeed.LogObserver(slog.New(slog.NewTextHandler(&out, nil)))
	o.RangeUnread(changefeed.RangeUnread{LeaseRef: changefeed.LeaseRef{Lease: "p..-FF", Range: changefeed.FullRange()}, Owner: "a", For: time.Minute, Err: errRead})
	o.Recreated(changefeed.Recreated{From: changefeed.Source{Container: "one"}, To: changefeed.Source{Container: "two"}})
	for _, want := range []string{"level=ERROR msg=\"range is not read\"", "owner=a for=1m0s", fmt.Sprintf("error=%q", errRead), "from=one to=two"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, out.String())
		}
	}
}
