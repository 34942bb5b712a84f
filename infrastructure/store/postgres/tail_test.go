package postgres_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"feedbox/changefeed"
	"feedbox/infrastructure/store/postgres"
)

// Readers whose reads are held look together, each at its own position, some in pages that
// cut what was found, two of the same range, one of half a range: each sees all that was
// committed in its range, once and in order.
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
			for left := 3; left > 0; { // reads that find nothing after the last commit
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
					if page.CaughtUp {
						left--
					}
				default:
				}
				if i == 2 { // what others find meanwhile is not lost to one who is away
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	group.Wait()
	for i, r := range read {
		mine := map[string][]string{}
		for key, ids := range committed {
			place, err := feed.Place(key)
			must(t, err)
			if r.Has(place) {
				mine[key] = ids
			}
		}
		t.Run(fmt.Sprint(i, r), func(t *testing.T) { compare(t, seen[i], mine) })
	}
}

// What was empty since a moment says nothing about what is older.
func TestEmptySinceIsNotEmpty(t *testing.T) {
	db, pool := openAt(t, database(t))
	feed, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: 1})
	must(t, err)
	_, err = pool.Exec(t.Context(), insertEvent, hash(feed, "k"), "k", "old", `{"id":"old"}`)
	must(t, err)
	read := func(since time.Time) int {
		page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Since: since})
		must(t, err)
		return len(page.Items)
	}
	for began := time.Now(); read(time.Time{}) == 0 && time.Since(began) < time.Minute; {
		time.Sleep(10 * time.Millisecond) // the server itself may have a transaction open
	}
	if later, all := read(time.Now().Add(time.Hour)), read(time.Time{}); later != 0 || all != 1 {
		t.Errorf("%d events since an hour from now, %d in all; want 0 and 1", later, all)
	}
}
