package firestore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"feedbox/application/command"
	"feedbox/changefeed"
	"feedbox/infrastructure/store/firestore"
	"feedbox/infrastructure/store/recordstore"
	"feedbox/infrastructure/store/recordstore/recordstoretest"
)

// watcher reads all ranges of a feed.
type watcher struct {
	testing.TB
	feed      *firestore.Feed
	positions map[changefeed.FeedRange]string
	maxItems  int
	seen      map[string][]string // ids by key
}

func watch(t testing.TB, db *firestore.DB, ranges, maxItems int) *watcher {
	t.Helper()
	feed, err := firestore.NewFeed(db, ranges)
	must(t, err)
	return &watcher{t, feed, map[changefeed.FeedRange]string{}, maxItems, map[string][]string{}}
}

// round reads each range to its end and returns the number of events.
func (w *watcher) round() (items int) {
	w.Helper()
	ranges, err := w.feed.Ranges(w.Context())
	must(w, err)
	for _, r := range ranges {
		for {
			page, err := w.feed.Read(w.Context(), changefeed.ReadRequest{Range: r, Continuation: w.positions[r], MaxItems: w.maxItems})
			must(w, err)
			lsn := int64(0)
			for _, item := range page.Items {
				var key string
				must(w, json.Unmarshal(item.Key, &key))
				at, err := w.feed.Place(key)
				must(w, err)
				if !r.Has(at) || item.LSN < lsn {
					w.Fatalf("range %s shows %s, LSN %d after %d", r, key, item.LSN, lsn)
				}
				if lsn = item.LSN; lsn > time.Now().Add(-firestore.Settling).UnixMicro() {
					w.Fatalf("an event is shown that the emulator may show before earlier ones")
				}
				var d struct{ ID string }
				must(w, json.Unmarshal(item.Raw, &d))
				w.seen[key] = append(w.seen[key], d.ID)
			}
			items += len(page.Items)
			w.positions[r] = page.Continuation
			if page.CaughtUp {
				break
			}
		}
	}
	return items
}

// waitFor reads until it has seen n events. It fails if none is found for a minute.
func (w *watcher) waitFor(n int) {
	w.Helper()
	for last := time.Now(); n > 0; {
		switch seen := w.round(); {
		case seen > 0:
			n, last = n-seen, time.Now()
		case time.Since(last) > time.Minute:
			w.Fatalf("%d events are missing", n)
		}
	}
}

// settle waits until the feed delivers all commits, which it delays on the emulator.
func settle() { time.Sleep(firestore.Settling + 10*time.Millisecond) }

// The timestamp of an event is that of the request, not of the commit. Late commits are not missed,
// and the order is that of the commits.
func TestLateCommitsAreNeverMissed(t *testing.T) {
	db := open(t)
	w := watch(t, db, 1, 10)
	// Timestamps are up to 15 s old, so a commit with its deadline of 10 s is within the window of 30 s.
	put := func(ago time.Duration, id string) { must(t, db.PutEvents(t.Context(), time.Now().Add(-ago), "k", id)) }
	put(0, "first")
	w.waitFor(1)
	put(15*time.Second, "late")
	put(5*time.Second, "next")
	w.waitFor(2)
	put(time.Second, "latest-request")
	put(2*time.Second, "before-it")
	put(15*time.Second, "long-before-it")
	w.waitFor(3)
	put(0, "last")
	w.waitFor(1)
	w.round()
	if want := "[first late next latest-request before-it long-before-it last]"; fmt.Sprint(w.seen["k"]) != want {
		t.Errorf("the feed shows %v, want %s", w.seen["k"], want)
	}
	again := watch(t, db, 1, 2) // as a relay that takes over in the middle
	page, err := again.feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), MaxItems: 2})
	if err != nil || len(page.Items) != 2 || page.CaughtUp {
		t.Errorf("the first page: %+v, %v", page, err)
	}
	again = &watcher{t, w.feed, map[changefeed.FeedRange]string{changefeed.FullRange(): page.Continuation}, 2, map[string][]string{}}
	if again.waitFor(5); fmt.Sprint(again.seen["k"]) != "[next latest-request before-it long-before-it last]" {
		t.Errorf("from the second commit on: %v", again.seen["k"])
	}
}

// After a late commit, a search reads all events again. If it counted one of them twice, the next new event would
// complete that number and be missed.
func TestEventsAreCountedOnceAfterALateCommit(t *testing.T) {
	t.Parallel()
	db := open(t)
	db.Unsettle()
	feed, err := firestore.NewFeed(db, 1)
	must(t, err)
	at := ""
	for _, e := range []struct {
		id  string
		ago time.Duration
	}{{"first", 0}, {"second", 0}, {"late", 15 * time.Second}, {"third", 0}, {"fourth", 0}} {
		must(t, db.PutEvents(t.Context(), time.Now().Add(-e.ago), "k", e.id))
		page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: at})
		must(t, err)
		if at = page.Continuation; len(page.Items) != 1 {
			t.Errorf("%d events are shown after the commit of %s, want 1", len(page.Items), e.id)
		}
	}
}

// More events than one page, many of them with one timestamp.
func TestManyEventsWithOneTimestamp(t *testing.T) {
	t.Parallel()
	db := open(t)
	at := time.Now().Add(-time.Hour)
	var want []string
	for n := range 3 {
		var ids []string
		for i := range 350 {
			ids = append(ids, fmt.Sprintf("%d-%03d", n, i))
		}
		must(t, db.PutEvents(t.Context(), at, "k", ids...))
		want = append(want, ids...)
	}
	w := watch(t, db, 1, 100)
	settle()
	page, err := w.feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), MaxItems: 100})
	if err != nil || len(page.Items) != 350 || page.CaughtUp {
		t.Errorf("a page of 100 has %d items and cuts a commit of 350 (%v)", len(page.Items), err)
	}
	if w.round(); !slices.Equal(w.seen["k"], want) {
		t.Errorf("%d events are shown, want %d in their order", len(w.seen["k"]), len(want))
	}
}

// A search that lags far behind ends early, and is complete up to that point.
func TestLaggingSearchEndsEarly(t *testing.T) {
	t.Parallel()
	const late = 40 * time.Millisecond
	db, want := retimed(t, 60, late, 0)
	w := watch(t, db, 1, 3)
	w.feed.Narrow(5, late, 0)
	page, err := w.feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), MaxItems: 60})
	if err != nil || len(page.Items) == 0 || len(page.Items) == 60 || page.EndLSN <= page.Items[len(page.Items)-1].LSN {
		t.Errorf("the first search shows %d events, the end is at %d (%v)", len(page.Items), page.EndLSN, err)
	}
	if w.round(); !slices.Equal(w.seen["k"], want) {
		t.Errorf("the feed shows %v", w.seen["k"])
	}
	// The next owner of the range begins at the checkpoint again. A feed that ended before what was read already
	// would have lost commits, and the range would be held.
	all, err := w.feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: page.Continuation, MaxItems: 60})
	must(t, err)
	if read := all.Items[len(all.Items)-1].LSN; page.EndLSN < read {
		t.Errorf("the first search says that the feed ends at %d, and %d was read", page.EndLSN, read)
	}
}

// A timestamp may also be later than the commit, by as much as the clocks of the servers differ.
func TestSearchThatEndsEarlyAllowsForTheSlackOfClocks(t *testing.T) {
	t.Parallel()
	const late, ahead = 40 * time.Millisecond, 40 * time.Millisecond
	db, want := retimed(t, 120, late, ahead)
	w := watch(t, db, 1, 3)
	w.feed.Narrow(5, late, ahead)
	if w.round(); !slices.Equal(w.seen["k"], want) {
		t.Errorf("the feed shows %d events of %d: %v", len(w.seen["k"]), len(want), w.seen["k"])
	}
}

// retimed returns a database with n events, and their ids. Their timestamps are up to late before
// their commits, and up to ahead after them.
func retimed(t *testing.T, n int, late, ahead time.Duration) (db *firestore.DB, ids []string) {
	t.Helper()
	db = open(t)
	random := rand.New(rand.NewPCG(1, 0)) // a fixed seed
	for n := range n {
		id := fmt.Sprintf("%03d", n)
		must(t, db.PutEvents(t.Context(), time.Now(), "k", id))
		must(t, db.Retime(t.Context(), id, time.Duration(random.Int64N(int64(late+ahead-2*time.Millisecond)))-ahead+time.Millisecond))
		ids = append(ids, id)
	}
	settle()
	return db, ids
}

// Concurrent writers and readers: each event is delivered once, in the order of its key.
func TestFeedDeliversAllEventsInOrder(t *testing.T) {
	t.Parallel()
	db := open(t)
	p := baskets(t, db, &recordstore.Options{Attempts: 100}) // a busy emulator takes its time
	w := watch(t, db, 4, 7)
	var committed atomic.Int64
	var group errgroup.Group
	for range 6 {
		group.Go(func() error {
			made, err := p.Create(t.Context(), recordstoretest.Opening(""))
			if err != nil {
				return err
			}
			committed.Add(1)
			for n := range 15 {
				_, err := p.Update(t.Context(), command.Target{ID: made.Aggregate.ID()}, func(b *recordstoretest.Basket) error { return errors.Join(b.Add(fmt.Sprint(n)), b.Add("more")) })
				if err != nil {
					return err
				}
				committed.Add(2)
			}
			return nil
		})
	}
	ended := make(chan error, 1)
	go func() { ended <- group.Wait() }()
	read := 0
	for running := true; running; read += w.round() {
		select {
		case err := <-ended:
			must(t, err)
			running = false
		default:
		}
	}
	w.waitFor(int(committed.Load()) - read)
	events := subject(db).Events()
	shown := 0
	for key, ids := range w.seen {
		stored, err := events.OfKey(t.Context(), key)
		must(t, err)
		shown += len(ids)
		for at, e := range stored { // those of one commit come in any order
			if pair := (at + 1) / 2; at >= len(ids) || !slices.Contains(ids[max(0, 2*pair-1):min(len(ids), 2*pair+1)], e.ID) {
				t.Fatalf("key %s: event %d is not where it belongs in %v", key, at, ids)
			}
		}
	}
	if shown != int(committed.Load()) {
		t.Errorf("%d events are shown, %d were committed", shown, committed.Load())
	}
}

func TestFeedStartsAtItsPosition(t *testing.T) {
	t.Parallel()
	db := open(t)
	w := watch(t, db, 1, 10)
	read := func(req changefeed.ReadRequest) (ids []string) {
		req.Range = changefeed.FullRange()
		page, err := w.feed.Read(t.Context(), req)
		must(t, err)
		for _, item := range page.Items {
			ids = append(ids, string(item.Raw))
		}
		return ids
	}
	must(t, db.PutEvents(t.Context(), time.Now(), "k", "old"))
	end, err := w.feed.Now(t.Context(), changefeed.FullRange())
	must(t, err)
	must(t, db.PutEvents(t.Context(), time.Now().Add(-10*time.Second), "k", "new"))
	settle()
	if got := read(changefeed.ReadRequest{Continuation: end}); fmt.Sprint(got) != `[{"id":"new"}]` {
		t.Errorf("from the end on: %v", got)
	}
	if got := read(changefeed.ReadRequest{Since: time.Now().Add(time.Hour)}); len(got) != 0 {
		t.Errorf("since an hour from now: %v", got)
	}
	if got := read(changefeed.ReadRequest{Since: time.Now().Add(-time.Hour)}); len(got) != 2 {
		t.Errorf("since an hour ago: %v", got)
	}
	for _, bad := range []string{`"x"`, "1", `"-1"`} {
		if _, err := w.feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: bad}); !errors.Is(err, changefeed.ErrPermanent) {
			t.Errorf("continuation %s: %v", bad, err)
		}
	}
}

func TestRanges(t *testing.T) {
	t.Parallel()
	db := open(t)
	for _, n := range []int{3, -1, 32} {
		if _, err := firestore.NewFeed(db, n); err == nil {
			t.Errorf("%d ranges are accepted", n)
		}
	}
	few, many := watch(t, db, 2, 10), watch(t, db, 16, 10)
	halves, _ := few.feed.Ranges(t.Context())
	parts, _ := many.feed.Ranges(t.Context())
	_, err := many.feed.Read(t.Context(), changefeed.ReadRequest{Range: halves[1]})
	if split, ok := errors.AsType[*changefeed.SplitError](err); !ok || fmt.Sprint(split.Children) != fmt.Sprint(parts[8:]) {
		t.Errorf("a half of sixteen ranges: %v", err)
	}
	for n := range 40 {
		must(t, db.PutEvents(t.Context(), time.Now(), fmt.Sprint("key", n), fmt.Sprint("e", n)))
	}
	settle()
	if few.round(); len(few.seen) != 40 {
		t.Errorf("two ranges show %d keys of 40", len(few.seen))
	}
	if many.round(); len(many.seen) != 40 {
		t.Errorf("sixteen ranges show %d keys of 40", len(many.seen))
	}
	narrow := &watcher{t, few.feed, map[changefeed.FeedRange]string{}, 10, map[string][]string{}} // leases stay narrow after a merge
	for _, r := range parts {
		page, err := narrow.feed.Read(t.Context(), changefeed.ReadRequest{Range: r, MaxItems: 100})
		must(t, err)
		for _, item := range page.Items {
			narrow.seen[string(item.Key)] = nil
		}
	}
	if len(narrow.seen) != 40 {
		t.Errorf("sixteenths of two ranges show %d keys of 40", len(narrow.seen))
	}
}

func TestReplacedEventIsNotDeliveredAgain(t *testing.T) {
	t.Parallel()
	db := open(t)
	must(t, db.PutEvents(t.Context(), time.Now(), "k", "e1"))
	w := watch(t, db, 1, 10)
	w.waitFor(1)
	events := subject(db).Events()
	raw, err := events.Event(t.Context(), "k", "e1")
	must(t, err)
	_, version, err := events.Editable(raw)
	must(t, err)
	must(t, events.Replace(t.Context(), "k", "e1", []byte(`{"id":"e1","corrected":true}`), version))
	settle()
	if n := w.round(); n != 0 {
		t.Errorf("the feed shows %d events again", n)
	}
}
