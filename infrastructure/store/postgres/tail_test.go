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
	read := func(since time.Time) int {
		page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Since: since})
		must(t, err)
		return len(page.Items)
	}
	within(t, "the event is read", func() bool { return read(time.Time{}) > 0 })
	if later, all := read(time.Now().Add(time.Hour)), read(time.Time{}); later != 0 || all != 1 {
		t.Errorf("%d events since an hour from now, %d in all; want 0 and 1", later, all)
	}
}
