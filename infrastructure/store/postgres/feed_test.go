package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"feedbox/changefeed"
	"feedbox/infrastructure/store/postgres"
)

const insertEvent = `INSERT INTO events (hash, key, id, document) VALUES ($1, $2, $3, $4)`

// drain reads all ranges to their ends, calls saw for each event and returns their number.
func drain(t testing.TB, feed *postgres.Feed, positions map[changefeed.FeedRange]string, maxItems int, saw func(key, id string)) (items int) {
	t.Helper()
	ranges, err := feed.Ranges(t.Context())
	must(t, err)
	for _, r := range ranges {
		for {
			page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: r, Continuation: positions[r], MaxItems: maxItems})
			must(t, err)
			lsn := int64(0)
			for i, item := range page.Items {
				var key string
				must(t, json.Unmarshal(item.Key, &key))
				at, err := feed.Place(key)
				must(t, err)
				if !r.Has(at) || item.LSN < lsn {
					t.Fatalf("range %s shows %s, LSN %d after %d", r, key, item.LSN, lsn)
				}
				lsn = page.Items[i].LSN
				var d struct{ ID string }
				must(t, json.Unmarshal(item.Raw, &d))
				saw(key, d.ID)
			}
			items += len(page.Items)
			positions[r] = page.Continuation
			if page.CaughtUp {
				break
			}
		}
	}
	return items
}

// Transactions begin and end in any order: none is missed or delivered twice, those of one key keep
// their order, and no page splits one.
func TestLateCommitsAreNeverMissed(t *testing.T) {
	db, pool := openAt(t, database(t))
	feed, err := postgres.NewFeed(db, nil)
	must(t, err)
	ended, committed := commitInAnyOrder(t, pool, feed)
	seen := map[string][]string{}
	positions := map[changefeed.FeedRange]string{}
	saw := func(key, id string) { seen[key] = append(seen[key], id) }
	for running := true; running; {
		select {
		case <-ended:
			running = false
		default:
		}
		drain(t, feed, positions, 3, saw)
	}
	within(t, "every committed event is read", func() bool {
		drain(t, feed, positions, 3, saw)
		return count(seen) >= count(committed)
	})
	compare(t, seen, committed)
}

// hash returns the hash of a key.
func hash(feed *postgres.Feed, key string) (h int64) {
	at, _ := feed.Place(key) // never fails
	_, _ = fmt.Sscanf(at, "%X", &h)
	return h
}

// An open transaction holds back later commits and is reported.
func TestOpenTransactionHoldsBackTheFeed(t *testing.T) {
	db, pool := openAt(t, database(t))
	feed, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: 1})
	must(t, err)
	positions := map[changefeed.FeedRange]string{}
	var got []string
	saw := func(_, id string) { got = append(got, id) }
	store := func(on *pgxpool.Pool, id string) {
		_, err := on.Exec(t.Context(), insertEvent, hash(feed, id), id, id, fmt.Sprintf(`{"id":%q}`, id))
		must(t, err)
	}
	open, err := pool.Begin(t.Context())
	must(t, err)
	defer func() { _ = open.Rollback(context.WithoutCancel(t.Context())) }() // the pool waits for it
	_, err = open.Exec(t.Context(), insertEvent, hash(feed, "late"), "late", "late", `{"id":"late"}`)
	must(t, err)
	store(pool, "early")
	if drain(t, feed, positions, 10, saw); len(got) > 0 {
		t.Fatalf("shown before an older transaction has ended: %v", got)
	}
	time.Sleep(20 * time.Millisecond)
	drain(t, feed, positions, 10, saw)
	if feed.Held() < 10*time.Millisecond {
		t.Errorf("held for %s", feed.Held())
	}
	within(t, "the withheld event is reported", func() bool {
		page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: positions[changefeed.FullRange()]})
		must(t, err)
		return page.CaughtUp && page.Withheld == 1 && time.Since(page.WithheldSince) > time.Second
	})
	another, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: 1}) // of an operator, whose first read does not know since when
	must(t, err)
	if page, err := another.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: positions[changefeed.FullRange()]}); err != nil || page.Withheld != 1 {
		t.Errorf("the first read of another process reports %+v, %v", page, err)
	}
	oldest, err := db.OldestTransaction(t.Context())
	if err != nil || oldest.Age < 10*time.Millisecond || oldest.Age > time.Hour || !strings.Contains(oldest.End, "pg_terminate_backend") {
		t.Errorf("the oldest transaction is %+v, %v", oldest, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if at, err := feed.Now(ctx, changefeed.FullRange()); err == nil {
		t.Errorf("the end of the feed is %s although a transaction is open", at)
	}
	must(t, open.Commit(t.Context()))
	within(t, "both events are read", func() bool { return drain(t, feed, positions, 10, saw) == 0 && len(got) >= 2 && feed.Held() == 0 })
	if fmt.Sprint(got) != "[late early]" || feed.Held() != 0 {
		t.Errorf("then %v, held for %s", got, feed.Held())
	}
	if page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: positions[changefeed.FullRange()]}); err != nil || page.Withheld != 0 {
		t.Errorf("after the transaction %+v, %v", page, err)
	}
	end, err := feed.Now(t.Context(), changefeed.FullRange())
	must(t, err)
	store(pool, "new")
	var page *changefeed.Page
	within(t, "the new event is read", func() bool {
		page, err = feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: end})
		return err != nil || len(page.Items) > 0
	})
	if err != nil || len(page.Items) != 1 || string(page.Items[0].Key) != `"new"` {
		t.Errorf("from the end on: %+v, %v", page, err)
	}
	page, err = feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Since: time.Now().Add(time.Hour)})
	if err != nil || len(page.Items) != 0 {
		t.Errorf("since an hour from now: %+v, %v", page, err)
	}
}

func TestRanges(t *testing.T) {
	db := open(t)
	for _, n := range []int{3, -1, 2048} {
		if _, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: n}); err == nil {
			t.Errorf("%d ranges are accepted", n)
		}
	}
	few, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: 2})
	must(t, err)
	many, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: 8})
	must(t, err)
	halves, _ := few.Ranges(t.Context())
	eighths, _ := many.Ranges(t.Context())
	_, err = many.Read(t.Context(), changefeed.ReadRequest{Range: halves[1]})
	split, ok := errors.AsType[*changefeed.SplitError](err)
	if !ok || fmt.Sprint(split.Children) != fmt.Sprint(eighths[4:]) {
		t.Errorf("a half of eight ranges: %v", err)
	}
	for _, r := range eighths { // after a merge leases stay narrow
		if page, err := few.Read(t.Context(), changefeed.ReadRequest{Range: r}); err != nil || !page.CaughtUp {
			t.Errorf("an eighth of two ranges: %+v, %v", page, err)
		}
	}
	for _, bad := range []string{`"x"`, "1", `"-1"`} {
		if _, err := few.Read(t.Context(), changefeed.ReadRequest{Range: halves[0], Continuation: bad}); !errors.Is(err, changefeed.ErrPermanent) {
			t.Errorf("continuation %s: %v", bad, err)
		}
	}
}
