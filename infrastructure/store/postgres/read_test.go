package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"feedbox/changefeed"
	"feedbox/infrastructure/store/postgres"
)

// A gap after one position is not used for an earlier one: a rewound range is read again.
func TestRewoundRangeIsReadAgain(t *testing.T) {
	db, pool := openAt(t, database(t))
	feed, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: 2})
	must(t, err)
	ranges, err := feed.Ranges(t.Context())
	must(t, err)
	keys := [2]string{} // one of each range
	for n := 0; keys[0] == "" || keys[1] == ""; n++ {
		key := fmt.Sprint("key-", n)
		at, err := feed.Place(key)
		must(t, err)
		if ranges[0].Has(at) {
			keys[0] = key
		} else {
			keys[1] = key
		}
	}
	store := func(key, id string) {
		_, err := pool.Exec(t.Context(), insertEvent, hash(feed, key), key, id, fmt.Sprintf(`{"id":%q}`, id))
		must(t, err)
	}
	read := func(continuation string, most int) *changefeed.Page {
		page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: ranges[0], Continuation: continuation, MaxItems: most})
		must(t, err)
		return page
	}
	for n := range 5 {
		store(keys[0], fmt.Sprint("e", n))
	}
	var all *changefeed.Page
	within(t, "five events are read", func() bool { all = read("", 10); return len(all.Items) >= 5 })
	first := read("", 2)
	if len(first.Items) != 2 || len(all.Items) != 5 {
		t.Fatalf("%d and %d events, want 2 and 5", len(first.Items), len(all.Items))
	}
	// EndLSN of a full page is the end of the feed; other pages end with the last event.
	if end := all.Items[4].LSN; first.EndLSN != end || all.EndLSN != end {
		t.Errorf("the feed is said to end at %d and %d, and ends at %d", first.EndLSN, all.EndLSN, end)
	}
	store(keys[1], "other")
	if page := read(all.Continuation, 10); !page.CaughtUp {
		t.Errorf("after the last event: %+v", page)
	}
	for from, want := range map[string]int{"": 5, first.Continuation: 3, all.Continuation: 0} {
		if page := read(from, 10); len(page.Items) != want {
			t.Errorf("%d events after %q, want %d", len(page.Items), from, want)
		}
	}
}

// A feed that was read while it was empty uses its index after it has grown, although the table was
// not analyzed.
func TestGrownFeedIsReadByItsIndex(t *testing.T) {
	db, pool := openAt(t, database(t))
	feed, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: 1})
	must(t, err)
	_, err = pool.Exec(t.Context(), `ALTER TABLE events SET (autovacuum_enabled = false)`)
	must(t, err)
	_, err = pool.Exec(t.Context(), `VACUUM ANALYZE events`)
	must(t, err)
	for n := range 20 { // the server keeps a plan after some
		_, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange()})
		must(t, err)
		if n == 10 {
			_, err := pool.Exec(t.Context(), `INSERT INTO events (hash, key, id, document) SELECT n, 'k', n::text, '{}' FROM generate_series(1, 1000) n`)
			must(t, err)
		}
	}
	time.Sleep(1100 * time.Millisecond) // a server counts what it read once a second
	_, err = feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange()})
	must(t, err)
	var whole int
	must(t, pool.QueryRow(t.Context(), `SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'events' AND schemaname = 'feedbox'`).Scan(&whole))
	if whole > 3 { // of the statements that made and analyzed it
		t.Errorf("the whole table was read %d times", whole)
	}
}

// A page of a backlog is read in the order of the index; later events are not read.
func TestPageOfABacklogIsReadByItsIndex(t *testing.T) {
	db, pool := openAt(t, database(t))
	feed, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: 1})
	must(t, err)
	const backlog, pages, size = 3000, 4, 10 // of old transactions with as many events each
	_, err = pool.Exec(t.Context(), `INSERT INTO events (xid, hash, key, id, document) SELECT (100+(n-1)/$1)::text::xid8, n, 'k', n::text, repeat('x', 500) FROM generate_series(1, $2) n`, size, backlog)
	must(t, err)
	_, err = pool.Exec(t.Context(), `VACUUM ANALYZE events`)
	must(t, err)
	entries := func() (read int) {
		t.Helper()
		time.Sleep(1100 * time.Millisecond) // a server counts what it read once a second
		_, err = feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), MaxItems: size})
		must(t, err)
		must(t, pool.QueryRow(t.Context(), `SELECT sum(i.idx_tup_read) + min(t.seq_tup_read) FROM pg_stat_user_indexes i JOIN pg_stat_user_tables t USING (relid) WHERE t.relname = 'events' AND t.schemaname = 'feedbox'`).Scan(&read))
		return read
	}
	before := entries()
	for range pages {
		page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), MaxItems: size})
		must(t, err)
		if len(page.Items) != size {
			t.Fatalf("a page of %d", len(page.Items))
		}
	}
	if read := entries() - before; read == 0 || read > backlog {
		t.Errorf("%d entries of indexes and rows were read for %d pages of %d", read, pages, size)
	}
}

// readPages reads a range to its end and returns the pages with events.
func readPages(t testing.TB, feed *postgres.Feed, r changefeed.FeedRange, from string, most int) (pages []*changefeed.Page) {
	t.Helper()
	for {
		page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: r, Continuation: from, MaxItems: most})
		must(t, err)
		if page.CaughtUp && page.Continuation == from {
			return pages
		}
		if from = page.Continuation; len(page.Items) > 0 {
			pages = append(pages, page)
		}
	}
}

func TestPageIsLimitedByBytes(t *testing.T) {
	db, pool := openAt(t, database(t))
	feed, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: 1})
	must(t, err)
	const mb = 1 << 20
	for n, size := range []int{10 * mb, mb, mb, mb, mb, mb, mb, 100} {
		_, err := pool.Exec(t.Context(), insertEvent, n, "k", fmt.Sprint(n), strings.Repeat("x", size))
		must(t, err)
	}
	var got []int
	within(t, "all events are read", func() bool {
		got = nil
		events := 0
		for _, page := range readPages(t, feed, changefeed.FullRange(), "", 100) {
			got, events = append(got, page.Bytes), events+len(page.Items)
		}
		return events == 8
	})
	if want := []int{10 * mb, 4 * mb, 2*mb + 100}; !slices.Equal(got, want) {
		t.Errorf("pages of %d bytes, want %d", got, want)
	}
}

// A transaction of many keys is read in several pages, each with all of its events of a key. Every
// position within it can be continued, also by leases of smaller ranges.
func TestLargeTransactionIsReadInPages(t *testing.T) {
	db, pool := openAt(t, database(t))
	feed, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: 1, Hold: time.Millisecond})
	must(t, err)
	halves, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: 2})
	must(t, err)
	const keys, each, most = 100, 7, 30
	all := keys*each + 2
	store := func(key, numbers string) {
		_, err := pool.Exec(t.Context(), `INSERT INTO events (hash, key, id, document) SELECT h, k, k || '-' || n, '{}' FROM unnest($1::int[], $2::text[]) AS keys (h, k), `+numbers+` n`,
			hashes(feed, key), strings.Fields(key))
		must(t, err)
	}
	var many []string
	for k := range keys {
		many = append(many, fmt.Sprint("k", k))
	}
	store("before", "generate_series(1, 1)")
	store(strings.Join(many, " "), fmt.Sprintf("generate_series(1, %d)", each))
	store("after", "generate_series(1, 1)")
	var pages []*changefeed.Page
	within(t, "the last event is read", func() bool {
		pages = readPages(t, feed, changefeed.FullRange(), "", most)
		last := len(pages) - 1
		return last >= 0 && string(pages[last].Items[len(pages[last].Items)-1].Key) == `"after"`
	})
	pageOf := map[string]int{}
	read := 0
	for i, page := range pages {
		if len(page.Items) > most+each {
			t.Errorf("a page of %d events", len(page.Items))
		}
		if last := i == len(pages)-1; page.Cut == last && i > 0 {
			t.Errorf("page %d of %d is cut: %t", i, len(pages), page.Cut)
		}
		for _, item := range page.Items {
			if at, known := pageOf[string(item.Key)]; known && at != i {
				t.Errorf("pages %d and %d have events of key %s", at, i, item.Key)
			}
			pageOf[string(item.Key)] = i
		}
		read += len(page.Items)
		rest := 0
		for _, half := range []changefeed.FeedRange{{Max: "20000000"}, {Min: "20000000", Max: "FF"}} {
			rest += events(readPages(t, halves, half, page.Continuation, most))
		}
		if read+rest != all {
			t.Errorf("%d events up to %s and %d after it, want %d", read, page.Continuation, rest, all)
		}
	}
	if read != all || len(pages) < all/(most+each) {
		t.Errorf("%d events in %d pages, want %d events", read, len(pages), all)
	}
}

func events(pages []*changefeed.Page) (n int) {
	for _, page := range pages {
		n += len(page.Items)
	}
	return n
}

func hashes(feed *postgres.Feed, keys string) (all []int32) {
	for _, key := range strings.Fields(keys) {
		all = append(all, int32(hash(feed, key))) //nolint:gosec // 30 bits
	}
	return all
}
