package cosmosfeed_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"feedbox/changefeed"
	"feedbox/infrastructure/emulator/cosmosemu"
)

// Each test here is about one pitfall of azcosmos' ReadChangeFeed.

// wire records the feed reads that reach the service.
type wire struct {
	mu    sync.Mutex
	calls []http.Header
}

func (a *account) watch() *wire {
	w := &wire{}
	a.srv.Control(cosmosemu.OpReadChangeFeed, func(c *cosmosemu.Call) *cosmosemu.Fault {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.calls = append(w.calls, c.Header.Clone())
		return nil
	})
	return w
}

func (w *wire) last(t *testing.T) http.Header {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.calls) == 0 {
		t.Fatal("no feed read reached the service")
	}
	return w.calls[len(w.calls)-1]
}

// Pitfall 1: the SDK returns a position inside a physical range widened to all of it.
func TestPositionsOfNarrowRangesStayNarrow(t *testing.T) {
	a := newAccount(t, 1, false)
	a.put(100, 40)
	feed := a.feed("data")
	low, high := changefeed.FeedRange{Min: "", Max: "1ABC"}, changefeed.FeedRange{Min: "1ABC", Max: "FF"}
	lowIDs, at := drain(t, feed, low, "")
	highIDs, _ := drain(t, feed, high, "")
	if len(lowIDs)+len(highIDs) != 100 {
		t.Fatalf("%d and %d documents, want 100 in all", len(lowIDs), len(highIDs))
	}
	a.put(100, 40) // each document again
	again, _ := drain(t, feed, low, at)
	slices.Sort(lowIDs)
	slices.Sort(again)
	if !slices.Equal(lowIDs, again) {
		t.Errorf("resumed, the range has %d documents, want the same %d", len(again), len(lowIDs))
	}
}

// Pitfall 2: the SDK sends no bounds. With the policy the service receives them and need
// not send documents that would be dropped.
func TestBoundsReachTheServiceOnFeedReadsOnly(t *testing.T) {
	a := newAccount(t, 1, true)
	var others []string
	a.srv.Control(cosmosemu.OpAny, func(c *cosmosemu.Call) *cosmosemu.Fault {
		if c.Operation != cosmosemu.OpReadChangeFeed && c.Header.Get("x-ms-start-epk")+c.Header.Get("x-ms-read-key-type") != "" {
			others = append(others, string(c.Operation))
		}
		return nil
	})
	w := a.watch()
	drain(t, a.feed("data"), changefeed.FeedRange{Min: "0A", Max: "1ABC"}, "")
	if h := w.last(t); h.Get("x-ms-start-epk") != "0A" || h.Get("x-ms-end-epk") != "1ABC" || h.Get("x-ms-read-key-type") != "EffectivePartitionKeyRange" {
		t.Errorf("headers %v", h)
	}
	if len(others) > 0 {
		t.Errorf("other operations carry the headers: %v", others)
	}
}

// Pitfall 3: after a merge each of two leases reads the whole merged partition.
func TestMergedRangesDeliverEachDocumentOnce(t *testing.T) {
	for _, withPolicy := range []bool{true, false} {
		a := newAccount(t, 2, withPolicy)
		a.put(100, 40)
		feed := a.feed("data")
		ranges, err := feed.Ranges(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at := make([]string, len(ranges))
		for i, r := range ranges {
			_, at[i] = drain(t, feed, r, "")
		}
		physical, err := a.srv.PartitionKeyRanges("db", "data")
		if err != nil {
			t.Fatal(err)
		}
		if err := a.srv.Merge("db", "data", physical[0].ID, physical[1].ID); err != nil {
			t.Fatal(err)
		}
		a.put(100, 40)
		seen := map[string]int{}
		for i, r := range ranges {
			ids, _ := drain(t, feed, r, at[i])
			for _, id := range ids {
				seen[id]++
			}
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("policy %t: document %s was read %d times", withPolicy, id, n)
			}
		}
		if len(seen) != 100 {
			t.Errorf("policy %t: %d documents, want 100", withPolicy, len(seen))
		}
	}
}

// Pitfall 4: the SDK silently ignores a bare ETag as a continuation and starts from the
// beginning.
func TestPositionsResumeAndOthersAreRefused(t *testing.T) {
	a := newAccount(t, 1, true)
	a.put(30, 10)
	feed := a.feed("data")
	_, at := drain(t, feed, changefeed.FullRange(), "")
	if again, _ := drain(t, feed, changefeed.FullRange(), at); len(again) != 0 {
		t.Errorf("%d documents again after %s", len(again), at)
	}
	for _, bad := range []string{"30", `{"version":1}`, "eyJWIjoxfQ==", `"`} {
		if _, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: bad}); err == nil {
			t.Errorf("continuation %s was taken", bad)
		}
	}
}

// Pitfall 5: if a request has a token and a range, the SDK uses the token. A child that
// starts at its parent's position must read its own range.
func TestRangeOfARequestIsTheOneRead(t *testing.T) {
	a := newAccount(t, 1, true)
	a.put(50, 40)
	feed := a.feed("data")
	page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), MaxItems: 10})
	if err != nil {
		t.Fatal(err)
	}
	left, _ := drain(t, feed, changefeed.FeedRange{Min: "", Max: "20"}, page.Continuation)
	right, _ := drain(t, feed, changefeed.FeedRange{Min: "20", Max: "FF"}, page.Continuation)
	if len(left) == 0 || len(right) == 0 || len(left)+len(right) != 50-len(page.Items) {
		t.Errorf("%d and %d documents after the first %d of 50", len(left), len(right), len(page.Items))
	}
}

// Pitfall 6: the SDK writes the start time with the zone UTC, and sends it again with every
// position if it remains set. The service omits changes of that second.
func TestStartTimeIsSentOnceInHTTPFormat(t *testing.T) {
	a := newAccount(t, 1, true)
	a.put(5, 2)
	a.srv.Advance(time.Hour)
	since := time.Now().Add(30 * time.Minute)
	a.put(5, 2)
	w := a.watch()
	feed := a.feed("data")
	page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Since: since})
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Items) != 5 {
		t.Errorf("%d documents since then, want 5", len(page.Items))
	}
	if at := w.last(t).Get("If-Modified-Since"); at != since.Add(-time.Second).UTC().Format(http.TimeFormat) {
		t.Errorf("If-Modified-Since: %s", at)
	}
	if _, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Since: since, Continuation: page.Continuation}); err != nil {
		t.Fatal(err)
	}
	if h := w.last(t); h.Get("If-Modified-Since") != "" || h.Get("If-None-Match") != page.Continuation {
		t.Errorf("resumed with If-Modified-Since %q, If-None-Match %q", h.Get("If-Modified-Since"), h.Get("If-None-Match"))
	}
}

// Pitfall 7: the SDK's composite token contains only the last range. The token in the reply
// shows that a range split, and nothing of that reply is used, because it is one child's
// page.
func TestSplitIsReportedAndNotDelivered(t *testing.T) {
	for _, withPolicy := range []bool{true, false} {
		a := newAccount(t, 1, withPolicy)
		a.put(60, 40)
		feed := a.feed("data")
		page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), MaxItems: 10})
		if err != nil {
			t.Fatal(err)
		}
		physical, err := a.srv.PartitionKeyRanges("db", "data")
		if err != nil {
			t.Fatal(err)
		}
		if err := a.srv.Split("db", "data", physical[0].ID); err != nil {
			t.Fatal(err)
		}
		rest := 60 - len(page.Items)
		_, err = feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: page.Continuation, MaxItems: 10})
		var split *changefeed.SplitError
		if !errors.As(err, &split) || len(split.Children) != 2 || split.Range != changefeed.FullRange() {
			t.Fatalf("policy %t: read across a split: %v", withPolicy, err)
		}
		seen := 0
		for _, child := range split.Children {
			ids, _ := drain(t, feed, child, page.Continuation)
			seen += len(ids)
		}
		if seen != rest {
			t.Errorf("policy %t: %d documents from the children, want %d", withPolicy, seen, rest)
		}
	}
}

// Pitfall 8: an error between several ranges loses the results of the first ones. Each read
// covers one range, so the position moves with a page or not at all.
func TestErrorsDoNotMoveThePosition(t *testing.T) {
	a := newAccount(t, 4, true)
	a.put(200, 40)
	fault := 0
	a.srv.Control(cosmosemu.OpReadChangeFeed, func(*cosmosemu.Call) *cosmosemu.Fault {
		if fault++; fault%3 != 0 {
			return nil
		}
		f := []cosmosemu.Fault{cosmosemu.Failed(), cosmosemu.RangeGone(), {Execute: true, Loss: cosmosemu.Truncate}}[fault/3%3]
		return &f
	})
	feed := a.feed("data")
	ranges, err := feed.Ranges(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, r := range ranges {
		at := ""
		for tries := 0; ; tries++ {
			page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: r, Continuation: at, MaxItems: 9})
			if err != nil {
				if tries > 200 {
					t.Fatal(err)
				}
				continue
			}
			for _, i := range page.Items {
				seen[string(i.Raw)]++
			}
			if at = page.Continuation; page.CaughtUp {
				break
			}
		}
	}
	for raw, n := range seen {
		if n != 1 {
			t.Errorf("%s was read %d times", raw, n)
		}
	}
	if len(seen) != 200 {
		t.Errorf("%d documents, want 200", len(seen))
	}
}

// Pitfall 9: the SDK refuses nil options, and without a page size the service decides.
func TestPageSizeIsSentOnlyIfAsked(t *testing.T) {
	a := newAccount(t, 1, true)
	a.put(30, 10)
	w := a.watch()
	feed := a.feed("data")
	page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange()})
	if err != nil || len(page.Items) != 30 || w.last(t).Get("x-ms-max-item-count") != "" {
		t.Errorf("without a size: %d items, header %q, error %v", len(page.Items), w.last(t).Get("x-ms-max-item-count"), err)
	}
	page, err = feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), MaxItems: 7})
	if err != nil || len(page.Items) != 7 || w.last(t).Get("x-ms-max-item-count") != "7" {
		t.Errorf("with a size of 7: %d items, error %v", len(page.Items), err)
	}
}

// Pitfall 10: lease reads may be stale. Every write carries the ETag that was read, so a
// stale read changes nothing.
func TestStaleLeaseReadsChangeNothing(t *testing.T) {
	srv := cosmosemu.StartT(t, &cosmosemu.Options{Partitions: 1, StaleReads: 300 * time.Millisecond, Seed: 5})
	a := newAccountOn(t, srv, true)
	store := a.leases("leases")
	r := changefeed.Record{ID: "p..-FF", Body: []byte(`{"id":"p..-FF","n":0}`)}
	etag, err := store.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	stale, n := 0, 0
	for i := range 300 {
		read, err := store.Read(t.Context(), r.ID)
		if errors.Is(err, changefeed.ErrNotFound) {
			stale++ // older than the record
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		next := changefeed.Record{ID: r.ID, ETag: read.ETag, Body: fmt.Appendf(nil, `{"id":"p..-FF","n":%d}`, i)}
		fresh, err := store.Replace(t.Context(), next)
		switch {
		case read.ETag == etag && err == nil:
			etag = fresh
			n++
		case read.ETag != etag && errors.Is(err, changefeed.ErrETagMismatch):
			stale++
		default:
			t.Fatalf("read ETag %s, current %s: replace gave %v", read.ETag, etag, err)
		}
	}
	if stale == 0 || n == 0 {
		t.Errorf("%d stale reads and %d writes: nothing was tested", stale, n)
	}
}

// A missing or unsuitable container is refused at once.
func TestContainersThatCannotBeServedAreRefused(t *testing.T) {
	a := newAccount(t, 1, true)
	for name, try := range map[string]func() error{
		"describe": func() error { _, err := a.feed("missing").Source(t.Context()); return err },
		"ranges":   func() error { _, err := a.feed("missing").Ranges(t.Context()); return err },
		"read": func() error {
			_, err := a.feed("missing").Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange()})
			return err
		},
		"now": func() error { _, err := a.feed("missing").Now(t.Context(), changefeed.FullRange()); return err },
	} {
		if err := try(); !errors.Is(err, changefeed.ErrPermanent) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a.createContainer("tree", "/id", "/other")
	record := changefeed.Record{ID: "x", ETag: `"e"`, Body: []byte(`{"id":"x"}`)}
	for _, container := range []string{"missing", "data", "tree"} { // the last two are keyed otherwise
		store := a.leases(container)
		for name, try := range map[string]func() error{
			"list":    func() error { _, err := store.List(t.Context(), "x"); return err },
			"read":    func() error { _, err := store.Read(t.Context(), "x"); return err },
			"create":  func() error { _, err := store.Create(t.Context(), record); return err },
			"replace": func() error { _, err := store.Replace(t.Context(), record); return err },
			"delete":  func() error { return store.Delete(t.Context(), "x", record.ETag) },
		} {
			if err := try(); !errors.Is(err, changefeed.ErrPermanent) {
				t.Errorf("%s of leases in %s: %v", name, container, err)
			}
		}
	}
	p, err := changefeed.New(a.feed("missing"), a.leases("leases"), &recorder{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Run(t.Context()); !errors.Is(err, changefeed.ErrPermanent) {
		t.Errorf("Run on a missing container: %v", err)
	}
}
