package relay_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/domain/fault"
	"feedbox/tests/testenv"
)

// timed is a store with an index by time, of whole seconds, that returns pages of one period.
type timed struct {
	events     []relay.RecentEvent
	reads, had int
}

func (s *timed) add(key string, n int) {
	for range n {
		e := relay.RecentEvent{StoredEvent: relay.StoredEvent{StoredAt: time.Now().Truncate(time.Second)}}
		e.ID, e.Key = fmt.Sprintf("%s-%d", key, len(s.events)), key
		s.events = append(s.events, e)
	}
}

func (s *timed) Recent(ctx context.Context, q relay.RecentQuery) (relay.RecentPage, error) {
	return relay.Windows{Least: time.Second, Between: func(_ context.Context, from, until time.Time, most int, after string) (found []relay.RecentEvent, next string, err error) {
		s.reads++
		n, _ := strconv.Atoi(after)
		for i := n; i < len(s.events); i++ {
			if at := s.events[i].StoredAt; at.Before(from) || !at.Before(until) {
				continue
			}
			if len(found) == most {
				return found, strconv.Itoa(i), nil
			}
			found = append(found, s.events[i])
			s.had++
		}
		return found, "", nil
	}}.Recent(ctx, time.Now(), q)
}

func TestWindowsListTheNewestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &timed{}
		parkedtest.Recent(t, s, s.add)
	})
}

// The store has whole seconds, and the end of a listing may be within one.
func TestListingEndsWithTheSecondOfItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &timed{}
		s.add("k", 1)
		now := time.Now()
		time.Sleep(time.Minute)
		for after, n := range map[time.Duration]int{0: 0, time.Millisecond: 1, 999 * time.Millisecond: 1, time.Second: 1} {
			page, err := s.Recent(t.Context(), relay.RecentQuery{Limit: 5, Until: now.Add(after)})
			if err != nil || len(page.Events) != n {
				t.Errorf("until %s after the event: %+v, %v; want %d events", after, page.Events, err, n)
			}
		}
	})
}

// A burst, an idle month, and events at random times: each page has few reads, and few events are read
// more than once.
func TestPageOfAListingHasFewReads(t *testing.T) {
	random := testenv.Random(t)
	synctest.Test(t, func(t *testing.T) {
		s := &timed{}
		for range 20 {
			s.add("k", []int{1, 1, 3, 40, 700}[random.IntN(5)])
			time.Sleep(time.Duration(random.Int64N(int64([]time.Duration{time.Second, time.Hour, 40 * 24 * time.Hour}[random.IntN(3)]))))
		}
		q, listed, pages := relay.RecentQuery{Limit: 50}, 0, 0
		for {
			s.reads, s.had = 0, 0
			page, err := s.Recent(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if s.reads > 40 || s.had > 50*14 || len(page.Events) > 2*50 {
				t.Errorf("page %d: %d reads of %d events for %d", pages, s.reads, s.had, len(page.Events))
			}
			listed, pages = listed+len(page.Events), pages+1
			if q.Continuation = page.Continuation; q.Continuation == "" {
				break
			}
		}
		if listed != len(s.events) {
			t.Errorf("%d events are listed, want %d", listed, len(s.events))
		}
		if most := len(s.events)/20 + 20; pages > most {
			t.Errorf("%d pages for %d events", pages, len(s.events))
		}
	})
}

// A continuation comes from an address that anybody can change. It is refused, or lists something.
func FuzzContinuationOfAListing(f *testing.F) {
	for _, text := range []string{``, `{}`, `{"u":1,"l":1}`, `{"u":-1,"l":1}`, `{"u":9223372036854775807,"l":9223372036854775807}`, `{"u":1000000,"l":1000000,"a":"1"}`, `{"x":1}`, `[`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := &timed{}
		s.add("k", 3)
		for _, continuation := range []string{text, relay.Continue(rawText(text))} {
			page, err := s.Recent(t.Context(), relay.RecentQuery{Limit: 2, Continuation: continuation})
			if err != nil && !fault.Is(err, fault.Invalid) {
				t.Error(err)
			}
			if slices.ContainsFunc(page.Events, func(e relay.RecentEvent) bool { return e.ID == "" }) || s.reads > 80 {
				t.Errorf("%+v after %d reads", page, s.reads)
			}
		}
	})
}

// rawText is JSON that is not encoded again.
type rawText string

func (r rawText) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// A reader shows everything after RecentPage.Back as complete, also within a burst of one second.
func TestPageHasAllEventsAfterItsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &timed{}
		for range 3 {
			s.add("k", 30)
			time.Sleep(10 * time.Minute)
		}
		listed, continuation := map[string]bool{}, ""
		for pages := 0; pages == 0 || continuation != ""; pages++ {
			if pages > 50 {
				t.Fatal("the listing has no end")
			}
			page, err := s.Recent(t.Context(), relay.RecentQuery{Limit: 10, Continuation: continuation})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page.Events {
				listed[e.ID] = true
			}
			for _, e := range s.events {
				if !e.StoredAt.Before(page.Back) && !listed[e.ID] {
					t.Fatalf("page %d goes back to %s without %s of %s", pages, page.Back, e.ID, e.StoredAt)
				}
			}
			continuation = page.Continuation
		}
		if len(listed) != len(s.events) {
			t.Errorf("%d of %d events listed", len(listed), len(s.events))
		}
	})
}
