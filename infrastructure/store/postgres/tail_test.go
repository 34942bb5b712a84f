package postgres_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"feedbox/changefeed"
	"feedbox/infrastructure/store/postgres"
)

// Held readers share polls: at different positions, with pages smaller than the result, two of one
// range and one of half a range. Each sees all events of its range, once and in order.
func TestHeldReadsMissNothing(t *testing.T) {
	db, pool := openAt(t, database(t))
	feed, err := postgres.NewFeed(db, &postgres.FeedOptions{Hold: 40 * time.Millisecond})
	must(t, err)
	ranges, err := feed.Ranges(t.Context())
	must(t, err)
	half := changefeed.FeedRange{Min: ranges[3].Min, Max: "38000000"}
	read := slices.Concat(ranges, []changefeed.FeedRange{ranges[0], half})
	ended, committed := commitInAnyOrder(t, pool, feed)
	seen := make([]map[string][]string, len(read))
	var group sync.WaitGroup
	for i, r := range read {
		seen[i] = map[string][]string{}
		group.Go(func() {
			at := ""
			var sinceEnd time.Time
			for left := 3; left > 0 && (sinceEnd.IsZero() || time.Since(sinceEnd) < time.Minute); { // reads that find nothing after the last event
				page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: r, Continuation: at, MaxItems: 2 + 20*(i%2)})
				if err != nil {
					t.Error(err)
					return
				}
				for _, item := range page.Items {
					var key string
					var d struct{ ID string }
					if err := errors.Join(json.Unmarshal(item.Key, &key), json.Unmarshal(item.Raw, &d)); err != nil {
						t.Error(err)
					}
					seen[i][key] = append(seen[i][key], d.ID)
				}
				at = page.Continuation
				select {
				case <-ended:
					if page.CaughtUp && count(seen[i]) >= count(inRange(t, feed, r, committed)) {
						left--
					}
					if sinceEnd.IsZero() {
						sinceEnd = time.Now()
					}
				default:
				}
				if i == 2 { // a slow reader does not lose what the others find meanwhile
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	group.Wait()
	for i, r := range read {
		t.Run(fmt.Sprint(i, r), func(t *testing.T) { compare(t, seen[i], inRange(t, feed, r, committed)) })
	}
}

// inRange returns the events of the keys in r.
func inRange(t testing.TB, feed *postgres.Feed, r changefeed.FeedRange, byKey map[string][]string) map[string][]string {
	mine := map[string][]string{}
	for key, ids := range byKey {
		place, err := feed.Place(key)
		if err != nil {
			t.Error(err)
		}
		if r.Has(place) {
			mine[key] = ids
		}
	}
	return mine
}

// A range that is empty since some time may have earlier events.
func TestReadSinceALaterTimeKeepsEarlierEvents(t *testing.T) {
	db, pool := openAt(t, database(t))
	feed, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: 1})
	must(t, err)
	_, err = pool.Exec(t.Context(), insertEvent, hash(feed, "k"), "k", "old", `{"id":"old"}`)
	must(t, err)
	_, err = pool.Exec(t.Context(), `SELECT pg_current_xact_id()`)
	must(t, err)
	read := func(since time.Time) *changefeed.Page {
		page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Since: since})
		must(t, err)
		return page
	}
	within(t, "the event is read", func() bool { return len(read(time.Time{}).Items) > 0 })
	later, all := read(time.Now().Add(time.Hour)), read(time.Time{})
	if len(later.Items) != 0 || len(all.Items) != 1 {
		t.Errorf("%d events since an hour from now, %d in all; want 0 and 1", len(later.Items), len(all.Items))
	}
	// Ids above the last stored event may come again after a crash.
	if later.Continuation != all.Continuation {
		t.Errorf("the read since then ends at %s, want %s", later.Continuation, all.Continuation)
	}
}

// commitInAnyOrder starts writers whose transactions begin and end in any order. It returns a
// channel that is closed when they have ended, and the committed ids by key, to be read after that.
func commitInAnyOrder(t *testing.T, pool *pgxpool.Pool, feed *postgres.Feed) (ended chan struct{}, committed map[string][]string) {
	seed := seedOf(t)
	const writers, each = 8, 60
	var group sync.WaitGroup
	var mu sync.Mutex // guards committed
	committed = map[string][]string{}
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
	ended = make(chan struct{})
	go func() { group.Wait(); close(ended) }()
	return ended, committed
}

// count returns the number of events of all keys.
func count(byKey map[string][]string) (n int) {
	for _, ids := range byKey {
		n += len(ids)
	}
	return n
}

// compare reports events that were seen and not committed, missed, or seen in another order.
func compare(t *testing.T, seen, committed map[string][]string) {
	t.Helper()
	for key, want := range committed {
		if fmt.Sprint(sortedWithin(seen[key])) != fmt.Sprint(want) {
			t.Errorf("key %s: %v; want %v", key, seen[key], want)
		}
		delete(seen, key)
	}
	if len(seen) > 0 {
		t.Errorf("not committed: %v", seen)
	}
}

// sortedWithin sorts the events of each transaction, which have no order. Transactions keep their
// order.
func sortedWithin(ids []string) []string {
	for i := 1; i < len(ids); i++ {
		for j := i; j > 0 && transactionOf(ids[j]) == transactionOf(ids[j-1]) && ids[j] < ids[j-1]; j-- {
			ids[j], ids[j-1] = ids[j-1], ids[j]
		}
	}
	return ids
}

func transactionOf(id string) string { return id[:strings.LastIndexByte(id, '-')] }

// Otherwise a relay without events would read all the time.
func TestReadAtTheEndOfTheFeedLastsAsLongAsTheHold(t *testing.T) {
	db, _ := openAt(t, database(t))
	const hold = time.Second
	feed, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: 1, Hold: hold})
	must(t, err)
	first, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange()}) // returns a position at once
	must(t, err)
	for range 2 { // the second read knows the end
		began := time.Now()
		page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: first.Continuation})
		if took := time.Since(began); err != nil || !page.CaughtUp || took < hold/2 { // it may end before a poll that the hold would cut
			t.Errorf("%+v, %v after %v, want an empty page after about %v", page, err, took, hold)
		}
	}
}
