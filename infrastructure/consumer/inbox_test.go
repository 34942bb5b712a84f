package consumer

import "testing"

func TestJudge(t *testing.T) {
	last := Mark{Sequence: 5, AggregateVersion: 3, EventID: "e5"}
	tests := []struct {
		last Mark
		e    Event
		want Verdict
	}{
		{Mark{}, Event{ID: "e9", Sequence: 9}, Fresh},
		{last, Event{ID: "e6", Sequence: 6}, Fresh},
		{last, Event{ID: "e5", Sequence: 5}, Duplicate},
		{last, Event{ID: "other", Sequence: 5}, Stale},
		{last, Event{ID: "e4", Sequence: 4}, Stale},
		{last, Event{ID: "e7", Sequence: 7}, Gap},
		{last, Event{ID: "e5"}, Duplicate},
		{last, Event{ID: "x", AggregateVersion: 2}, Stale},
		{last, Event{ID: "x", AggregateVersion: 3}, Fresh},
		{last, Event{ID: "x"}, Fresh},
	}
	for _, tt := range tests {
		if got := Judge(tt.last, &tt.e); got != tt.want {
			t.Errorf("Judge(%+v, %+v) = %v, want %v", tt.last, tt.e, got, tt.want)
		}
	}
}

func TestMemoryInboxEvictsTheLeastRecentlyUsedKey(t *testing.T) {
	b := NewMemoryInbox(2)
	for i, key := range []string{"a", "b", "a", "c"} {
		if err := b.Record(t.Context(), key, Mark{Sequence: int64(i + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Record(t.Context(), "a", Mark{Sequence: 2}); err != nil { // ignored: it would move back
		t.Fatal(err)
	}
	for key, want := range map[string]int64{"a": 3, "b": 0, "c": 4} {
		if m, _ := b.Last(t.Context(), key); m.Sequence != want {
			t.Errorf("mark of %s is %d, want %d", key, m.Sequence, want)
		}
	}
}
