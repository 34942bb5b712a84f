package parkedtest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

// Recent is the test suite of a relay.Lister. add stores some events of a key, each with an id of its
// own. The store is empty and may have times of whole seconds.
func Recent(t *testing.T, store relay.Lister, add func(key string, events int)) {
	t.Helper()
	began := time.Now().Truncate(time.Second)
	list := func(what string, q relay.RecentQuery, between func()) (ids []string) {
		t.Helper()
		var last time.Time
		for page := 1; ; page++ {
			got, err := store.Recent(t.Context(), q)
			if err != nil || page > 1000 {
				t.Fatalf("%s, page %d: %v", what, page, err)
			}
			if len(got.Events) > 2*q.Limit {
				t.Errorf("%s: %d events on a page of %d", what, len(got.Events), q.Limit)
			}
			for _, e := range got.Events {
				if e.Trouble != "" || e.Key == "" || e.StoredAt.Before(began) {
					t.Fatalf("%s: %+v", what, e)
				}
				if !last.IsZero() && e.StoredAt.After(last.Add(time.Second)) {
					t.Errorf("%s: the event of %s is after that of %s", what, e.StoredAt, last)
				}
				last = e.StoredAt
				if slices.Contains(ids, e.ID) {
					t.Errorf("%s: %s is on two pages", what, e.ID)
				}
				ids = append(ids, e.ID)
			}
			if q.Continuation = got.Continuation; q.Continuation == "" {
				return ids
			}
			between()
		}
	}
	none := func() {}
	if ids := list("of no events", relay.RecentQuery{Limit: 2}, none); len(ids) != 0 {
		t.Errorf("%v in an empty store", ids)
	}
	add("a", 3)
	time.Sleep(1100 * time.Millisecond)
	middle := time.Now().Truncate(time.Second)
	add("b", 7)
	add("a", 2)
	time.Sleep(1100 * time.Millisecond)
	end := time.Now().Truncate(time.Second).Add(time.Second)
	time.Sleep(time.Until(end))
	before := list("of all", relay.RecentQuery{Limit: 100}, none)
	if len(before) != 12 {
		t.Fatalf("%v, want 12 events", before)
	}
	for _, limit := range []int{1, 2, 5} {
		ids := list("with writes between the pages", relay.RecentQuery{Limit: limit}, func() { add("new", 1) })
		if ids = slices.DeleteFunc(ids, func(id string) bool { return !slices.Contains(before, id) }); len(ids) != len(before) {
			t.Errorf("pages of %d events have %v, want all of %v", limit, ids, before)
		}
	}
	if ids := list("before the second part", relay.RecentQuery{Limit: 2, Until: middle}, none); len(ids) != 3 {
		t.Errorf("%v before %s, want 3", ids, middle)
	}
	if ids := list("of the second part", relay.RecentQuery{Limit: 2, From: middle, Until: end}, none); len(ids) != 9 || slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(before, id) }) {
		t.Errorf("%v from %s to %s, want 9", ids, middle, end)
	}
	if got, err := store.Recent(t.Context(), relay.RecentQuery{ID: before[3], Limit: 50}); err != nil || !slices.ContainsFunc(got.Events, func(e relay.RecentEvent) bool { return e.ID == before[3] }) {
		t.Errorf("the event %s: %+v, %v", before[3], got, err)
	}
	for _, id := range []string{"none", "../..", ".", "__x__", `"] OR true OR c["`, "'", "a/b/c", strings.Repeat("x", 1023), "%2F\u202e"} {
		got, err := store.Recent(t.Context(), relay.RecentQuery{ID: id, Limit: 50})
		if got.Events = slices.DeleteFunc(got.Events, func(e relay.RecentEvent) bool { return e.ID != id }); err != nil || len(got.Events) > 0 {
			t.Errorf("the event %s: %+v, %v", id, got, err)
		}
	}
	for _, text := range []string{"x", "e30x", relay.Continue("text"), relay.Continue(map[string]int{"unknown": 1})} {
		if _, err := store.Recent(t.Context(), relay.RecentQuery{Limit: 2, Continuation: text}); !fault.Is(err, fault.Invalid) {
			t.Errorf("continuation %q: %v, want an invalid one", text, err)
		}
	}
}
