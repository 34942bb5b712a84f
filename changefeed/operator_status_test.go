package changefeed_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
)

// reads is a feed of scripted replies by request.
type reads struct {
	changefeed.Feed
	reply func(req changefeed.ReadRequest) (*changefeed.Page, error)
}

func (f reads) Read(_ context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	return f.reply(req)
}

// If no reply is usable, the lag has the reason.
func TestOperatorLagFollowsTheFeedsReplies(t *testing.T) {
	now := time.Unix(1000, 0)
	half := changefeed.FeedRange{Max: "20"}
	type figures struct {
		transactions int64
		age          time.Duration
		known        bool
	}
	two, none, unknown := figures{2, time.Minute, true}, figures{known: true}, figures{}
	item := func() *changefeed.Page {
		return &changefeed.Page{EndLSN: 9, Items: []changefeed.Item{{LSN: 8, Timestamp: 940}}}
	}
	for name, tt := range map[string]struct {
		reply func(req changefeed.ReadRequest, call int) (*changefeed.Page, error)
		want  figures
		err   string
	}{
		"two wait": {func(changefeed.ReadRequest, int) (*changefeed.Page, error) {
			return item(), nil
		}, two, ""},
		"nothing waits": {func(changefeed.ReadRequest, int) (*changefeed.Page, error) {
			return &changefeed.Page{CaughtUp: true, Continuation: `"6"`}, nil
		}, none, ""},
		"it fails": {func(changefeed.ReadRequest, int) (*changefeed.Page, error) {
			return nil, errRead
		}, unknown, errRead.Error()},
		"a page that leads nowhere": {func(req changefeed.ReadRequest, call int) (*changefeed.Page, error) {
			if call > 1 {
				return item(), nil
			}
			return &changefeed.Page{Continuation: req.Continuation}, nil
		}, none, ""},
		"a page without a position": {func(_ changefeed.ReadRequest, call int) (*changefeed.Page, error) {
			if call > 1 {
				return item(), nil
			}
			return &changefeed.Page{}, nil
		}, none, ""},
		"behind a page of others": {func(req changefeed.ReadRequest, _ int) (*changefeed.Page, error) {
			if req.Range != changefeed.FullRange() || req.MaxItems != 1 && req.Continuation != `"7"` {
				return nil, fmt.Errorf("a read of %+v", req)
			}
			if req.Continuation == `"5"` {
				return &changefeed.Page{Continuation: `"7"`}, nil
			}
			return item(), nil
		}, two, ""},
		"caught up, whatever its position": {func(_ changefeed.ReadRequest, call int) (*changefeed.Page, error) {
			if call > 1 {
				return item(), nil
			}
			return &changefeed.Page{Continuation: `"7"`, CaughtUp: true}, nil
		}, none, ""},
		"a split into one": {func(req changefeed.ReadRequest, _ int) (*changefeed.Page, error) {
			if req.Range == half {
				return item(), nil
			}
			return nil, &changefeed.SplitError{Range: req.Range, Children: []changefeed.FeedRange{half}}
		}, unknown, "now served by 1"},
		"half of a split fails": {func(req changefeed.ReadRequest, _ int) (*changefeed.Page, error) {
			switch req.Range {
			case half:
				return nil, errRead
			case changefeed.FullRange():
				return nil, &changefeed.SplitError{Range: req.Range, Children: []changefeed.FeedRange{half, {Min: "20", Max: "FF"}}}
			}
			return item(), nil
		}, unknown, errRead.Error()},
	} {
		for _, before := range []string{"", "it failed before"} {
			w := newWorld(t, 1)
			w.keep(fmt.Sprintf(`-FF "ContinuationToken":"\"5\"","properties":{"lastError":%q}`, before))
			given, calls := 0, 0
			feed := reads{w.feed, func(req changefeed.ReadRequest) (*changefeed.Page, error) {
				calls++
				page, err := tt.reply(req, calls)
				if page != nil {
					given++
					page.Release = func() { given-- }
				}
				return page, err
			}}
			lags, err := changefeed.NewOperator(feed, w.store, &changefeed.OperatorOptions{Now: func() time.Time { return now }}).Lag(t.Context())
			if err != nil || len(lags) != 1 {
				t.Fatalf("%s: %+v, error %v", name, lags, err)
			}
			l := lags[0]
			if got := (figures{l.Transactions, l.Age, l.Known}); got != tt.want {
				t.Errorf("%s: %+v, want %+v", name, got, tt.want)
			}
			want := cmp.Or(before, tt.err)
			if l.ID != w.leases()[0].ID || !strings.Contains(l.Error, want) || (l.Error == "") != (want == "") {
				t.Errorf("%s: of lease %q the error is %q, want %q", name, l.ID, l.Error, want)
			}
			if given != 0 {
				t.Errorf("%s: %d pages are not released", name, given)
			}
			ctx, end := context.WithCancelCause(t.Context())
			end(errCut)
			if _, err := changefeed.NewOperator(feed, ignoringContext{w.store}, nil).Lag(ctx); !errors.Is(err, errCut) {
				t.Errorf("%s: when the call has ended: error %v", name, err)
			}
		}
	}
}

// ignoringContext is a lease store that ignores the end of a call's context.
type ignoringContext struct{ changefeed.LeaseStore }

func (s ignoringContext) List(ctx context.Context, prefix string) ([]changefeed.Record, error) {
	return s.LeaseStore.List(context.WithoutCancel(ctx), prefix)
}

// backwards is a lease store that lists the last record first.
type backwards struct{ changefeed.LeaseStore }

func (s backwards) List(ctx context.Context, prefix string) ([]changefeed.Record, error) {
	records, err := s.LeaseStore.List(ctx, prefix)
	slices.Reverse(records)
	return records, err
}

func TestHostsListsReadableRecordsInOrder(t *testing.T) {
	w := newWorld(t, 1)
	const prefix = "changefeedmemory_db_coll.host."
	for id, body := range map[string]string{
		"b.1": `"host":"b","incarnation":"1","expiryMs":20000,"timestamp":"2026-05-04T03:02:01.0000000Z"`,
		"a.2": `"host":"a","incarnation":"2","expiryMs":1500,"draining":true,"timestamp":"some day"`,
		"a.1": `"host":"a","incarnation":"1","expiryMs":1,"spare":true,"timestamp":"2026-05-04T03:02:01.5000000Z"`,
		"c.1": `"host":3`,
	} {
		create(t, w, prefix+id, fmt.Sprintf(`{"id":%q,%s}`, prefix+id, body))
	}
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	want := []changefeed.Host{
		{Name: "a", Incarnation: "1", Spare: true, Timestamp: at.Add(time.Second / 2), Expiry: time.Millisecond},
		{Name: "a", Incarnation: "2", Draining: true, Expiry: 1500 * time.Millisecond},
		{Name: "b", Incarnation: "1", Timestamp: at, Expiry: 20 * time.Second},
	}
	if hosts, err := changefeed.NewOperator(w.feed, backwards{w.store}, nil).Hosts(t.Context()); err != nil || !reflect.DeepEqual(hosts, want) {
		t.Errorf("hosts %+v, error %v; want %+v", hosts, err, want)
	}
}

func TestLagReadsPastPagesOfOtherRanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a := w.start("a", nil, nil)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		a.stop()
		feed := &emptyPageFirst{Feed: w.feed}
		lags, err := changefeed.NewOperator(feed, w.store, nil).Lag(t.Context())
		if err != nil || len(lags) != 1 || !lags[0].Known || lags[0].Transactions != 3 {
			t.Errorf("lags %+v, error %v; want 3 transactions", lags, err)
		}
	})
}

// A feed may have many documents of other leases, or deletes, before the first change of a range.
func TestLagReadsPastManyForeignDocumentsInFewPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a := w.start("a", nil, nil)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		a.stop()
		feed := &foreignFirst{Feed: w.feed, foreign: 10_000}
		lags, err := changefeed.NewOperator(feed, w.store, nil).Lag(t.Context())
		if err != nil || len(lags) != 1 || !lags[0].Known || lags[0].Transactions != 3 {
			t.Errorf("lags %+v, error %v; want 3 transactions", lags, err)
		}
		if feed.reads > 50 || feed.most > 1 {
			t.Errorf("%d reads, %d pages in memory at once; want a few, and one", feed.reads, feed.most)
		}
	})
}

// A range is paused by its own request, or with all others.
func TestLagNamesThePausedRanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		w.start("a", nil, nil)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 3 })
		one := w.leases()[1].ID
		paused := func() (ids []string) {
			t.Helper()
			lags, err := w.operator().Lag(t.Context())
			if err != nil || len(lags) != 3 {
				t.Fatal(lags, err)
			}
			for _, l := range lags {
				if l.Paused {
					ids = append(ids, l.ID)
				}
			}
			return ids
		}
		if err := w.operator().PauseLeases(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		if got := paused(); !slices.Equal(got, []string{one}) {
			t.Errorf("paused %q, want %s", got, one)
		}
		if err := errors.Join(w.operator().ResumeLeases(t.Context(), one), w.operator().Pause(t.Context())); err != nil {
			t.Fatal(err)
		}
		if got := paused(); len(got) != 3 {
			t.Errorf("all ranges are paused, and these are shown so: %q", got)
		}
	})
}

// Each of many ranges has a lag, although some do not answer. Commands wait for about half a minute.
func TestSilentRangesDelayNoLagOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 100)
		a := w.start("a", nil, nil)
		eventually(t, time.Minute, "owned", func() bool { return w.owners()["a"] == 100 })
		a.stop()
		var reads atomic.Int64
		feed := slowReads{w.feed, func(ctx context.Context) {
			took := 400 * time.Millisecond
			if reads.Add(1)%40 == 0 {
				took = time.Hour
			}
			_ = pause(ctx, took)
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		lags, err := changefeed.NewOperator(feed, w.store, nil).Lag(ctx)
		known := 0
		for i, l := range lags {
			if i > 0 && l.Range.Min <= lags[i-1].Range.Min {
				t.Errorf("%s after %s", l.Range, lags[i-1].Range)
			}
			if l.Known {
				known++
			} else if l.Unknown != changefeed.UnknownUnread {
				t.Errorf("a lag is unknown because it is %s", l.Unknown)
			}
		}
		if err != nil || len(lags) != 100 || known != 98 {
			t.Errorf("%d lags, %d known, error %v; want 100, and 98", len(lags), known, err)
		}
	})
}

// slowReads is a feed whose reads wait.
type slowReads struct {
	changefeed.Feed
	wait func(ctx context.Context)
}

func (f slowReads) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	if f.wait(ctx); ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return f.Feed.Read(ctx, req)
}

// foreignFirst has a change after many documents that are not of the range.
type foreignFirst struct {
	changefeed.Feed
	foreign, reads, lent, most int
}

func (f *foreignFirst) Read(_ context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	var at int
	_, _ = fmt.Sscanf(req.Continuation, `"%d"`, &at)
	f.reads++
	f.lent++
	f.most = max(f.most, f.lent)
	page := change(int64(f.foreign+1), "k")
	if at < f.foreign {
		page = &changefeed.Page{Continuation: fmt.Sprintf("%q", strconv.Itoa(min(at+req.MaxItems, f.foreign)))}
	}
	page.EndLSN, page.Release = int64(f.foreign+3), func() { f.lent-- }
	return page, nil
}

// emptyPageFirst replies with an empty page, and with documents after its position.
type emptyPageFirst struct {
	changefeed.Feed
	reads int
}

func (f *emptyPageFirst) Read(_ context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	if f.reads++; f.reads > 10 {
		return nil, errRead
	}
	if req.Continuation != `"5"` {
		return &changefeed.Page{Continuation: `"5"`}, nil
	}
	page := change(6, "k")
	page.EndLSN = 8
	return page, nil
}
