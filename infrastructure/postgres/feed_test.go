package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"feedbox/changefeed"
	"feedbox/domain/fault"
	"feedbox/infrastructure/document"
	"feedbox/infrastructure/postgres"
)

const insertEvent = `INSERT INTO events (hash, key, id, document) VALUES ($1, $2, $3, $4)`

// drain reads all ranges to their ends, and returns the ids of each key in their order.
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

// Transactions that begin and end in any order: none is missed, none is shown twice, those
// that follow each other under one key keep their order, and no page cuts one.
func TestLateCommittersAreNeverMissed(t *testing.T) {
	db, pool := openAt(t, database(t))
	feed, err := postgres.NewFeed(db, nil)
	must(t, err)
	seed := seedOf(t)
	const writers, each = 8, 60
	var group sync.WaitGroup
	var mu sync.Mutex // guards committed
	committed := map[string][]string{}
	for w := range writers {
		random := rand.New(rand.NewPCG(seed, uint64(w)))
		group.Go(func() {
			for n := range each {
				key := fmt.Sprintf("w%d.%d", w, n%3) // no other writer has it
				count := 1 + random.IntN(4)
				tx, err := pool.Begin(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				var ids []string
				for i := range count {
					id := fmt.Sprintf("%s-%d-%d", key, n, i)
					ids = append(ids, id)
					if _, err := tx.Exec(t.Context(), insertEvent, hash(feed, key), key, id, fmt.Sprintf(`{"id":%q}`, id)); err != nil {
						t.Error(err)
					}
					if random.IntN(3) == 0 { // it is open while others begin and end
						time.Sleep(time.Duration(random.IntN(8)) * time.Millisecond)
					}
				}
				if random.IntN(6) == 0 {
					err = tx.Rollback(t.Context())
				} else if err = tx.Commit(t.Context()); err == nil {
					mu.Lock()
					committed[key] = append(committed[key], ids...)
					mu.Unlock()
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { group.Wait(); close(ended) }()
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
	drain(t, feed, positions, 3, saw)
	for key, want := range committed {
		if fmt.Sprint(sortedWithin(seen[key])) != fmt.Sprint(want) {
			t.Errorf("key %s: %v; want %v", key, seen[key], want)
		}
		delete(seen, key)
	}
	if len(seen) > 0 {
		t.Errorf("nobody committed %v", seen)
	}
}

// sortedWithin puts the events of one transaction, which may come in any order, in theirs;
// transactions stay where they are.
func sortedWithin(ids []string) []string {
	for i := 1; i < len(ids); i++ {
		for j := i; j > 0 && transactionOf(ids[j]) == transactionOf(ids[j-1]) && ids[j] < ids[j-1]; j-- {
			ids[j], ids[j-1] = ids[j-1], ids[j]
		}
	}
	return ids
}

func transactionOf(id string) string { return id[:strings.LastIndexByte(id, '-')] }

// hash is where a key lies, as the feed says.
func hash(feed *postgres.Feed, key string) (h int64) {
	at, _ := feed.Place(key) // never fails
	_, _ = fmt.Sscanf(at, "%X", &h)
	return h
}

// One open transaction holds back what was committed after it began, and is told of.
func TestAnOpenTransactionDelays(t *testing.T) {
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
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if at, err := feed.Now(ctx, changefeed.FullRange()); err == nil {
		t.Errorf("the end of the feed is %s although a transaction is open", at)
	}
	must(t, open.Commit(t.Context()))
	drain(t, feed, positions, 10, saw)
	if fmt.Sprint(got) != "[late early]" || feed.Held() != 0 {
		t.Errorf("then %v, held for %s", got, feed.Held())
	}
	end, err := feed.Now(t.Context(), changefeed.FullRange())
	must(t, err)
	store(pool, "new")
	page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: end})
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

// What has expired goes, from the front, and what lives stays.
func TestSweep(t *testing.T) {
	db, pool := openAt(t, database(t))
	_, err := pool.Exec(t.Context(), `INSERT INTO events (hash, key, id, document, expires_at) SELECT n, 'k', n::text, '{}', now() + CASE WHEN n <= 12000 THEN interval '-1 s' ELSE interval '1 h' END FROM generate_series(1, 12010) n`)
	must(t, err)
	must(t, postgres.Upkeep{DB: db}.Sweep(t.Context()))
	var left int
	must(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM events`).Scan(&left))
	if left != 10 {
		t.Errorf("%d events are left, want 10", left)
	}
}

func TestAnEventIsReplacedWhileItIsWhatWasRead(t *testing.T) {
	db, pool := openAt(t, database(t))
	feed, err := postgres.NewFeed(db, nil)
	must(t, err)
	_, err = pool.Exec(t.Context(), insertEvent, hash(feed, "k"), "k", "e1", `{"id":"e1"}`)
	must(t, err)
	events := postgres.Events{DB: db, Decoder: document.EventDecoder{}}
	raw, err := events.Event(t.Context(), "k", "e1")
	must(t, err)
	_, version, err := events.Editable(raw)
	must(t, err)
	must(t, events.Replace(t.Context(), "k", "e1", []byte(`{"id":"e1","mended":true}`), version))
	if raw, err = events.Event(t.Context(), "k", "e1"); err != nil || !strings.Contains(string(raw), "mended") {
		t.Errorf("%s, %v", raw, err)
	}
	if err := events.Replace(t.Context(), "k", "e1", []byte(`{}`), version); !fault.Is(err, fault.PreconditionFailed) {
		t.Errorf("an older version was replaced: %v", err)
	}
	if err := events.Replace(t.Context(), "k", "gone", []byte(`{}`), version); !fault.Is(err, fault.NotFound) {
		t.Errorf("an event that is not there: %v", err)
	}
}
