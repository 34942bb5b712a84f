package changefeed

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// trial is a handler over numbered items with keys, some of which always fail.
type trial struct {
	keys  []string
	bad   map[int]bool
	named bool // it names the bad ones
	down  bool // everything fails
	calls int
	done  map[int]int
	order map[string][]int
	moved bool // it was given an item behind a failed one of the same key
}

func (tr *trial) try(items []int) error {
	tr.calls++
	if !slices.IsSorted(items) {
		tr.moved = true
	}
	var poison PoisonError
	failed := tr.down
	for at, i := range items {
		if tr.bad[i] {
			failed = true
			poison.Documents = append(poison.Documents, Poison{Index: at, Err: errors.New("bad")})
		}
	}
	blocked := map[string]bool{}
	for _, i := range items {
		blocked[tr.keys[i]] = blocked[tr.keys[i]] || tr.bad[i]
		if tr.down || (failed && !tr.named) || blocked[tr.keys[i]] {
			continue
		}
		tr.done[i]++
		tr.order[tr.keys[i]] = append(tr.order[tr.keys[i]], i)
	}
	switch {
	case failed && tr.named && !tr.down:
		return &poison
	case failed:
		return errors.New("failed")
	}
	return nil
}

func newTrial(keys []string, bad ...int) *trial {
	tr := &trial{keys: keys, bad: map[int]bool{}, done: map[int]int{}, order: map[string][]int{}}
	for _, b := range bad {
		tr.bad[b] = true
	}
	return tr
}

func (tr *trial) run(outage bool) *narrowing {
	items := make([]Item, len(tr.keys))
	for i, k := range tr.keys {
		items[i].Key = []byte(k)
	}
	groups, _ := groupByKey(items)
	n := &narrowing{groups: groups, try: tr.try, stop: func(failed, handled int) bool {
		return outage && handled == 0 && failed >= outageProbe
	}}
	n.run()
	return n
}

func TestNarrowingFindsTheBadDocuments(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for round := range 500 {
		n := 1 + rng.IntN(60)
		tr := newTrial(make([]string, n))
		for i := range tr.keys {
			tr.keys[i] = fmt.Sprintf("k%d", rng.IntN(1+n/3))
			tr.bad[i] = rng.IntN(12) == 0
		}
		tr.named = round%2 == 0
		got := tr.run(false)
		first := map[string]int{} // the first bad item of each key
		for i, k := range tr.keys {
			if _, known := first[k]; tr.bad[i] && !known {
				first[k] = i
			}
		}
		for i, k := range tr.keys {
			bad, isHeld := first[k]
			handled := slices.Contains(got.handled, i)
			if wantHandled := !isHeld || i < bad; handled != wantHandled {
				t.Fatalf("round %d: item %d (key %s): handled %t, want %t", round, i, k, handled, wantHandled)
			}
			if handled && tr.done[i] == 0 {
				t.Fatalf("round %d: item %d counts as handled but was not", round, i)
			}
		}
		if len(got.failed) != len(first) {
			t.Fatalf("round %d: %d keys failed, want %d", round, len(got.failed), len(first))
		}
		for _, f := range got.failed {
			if i := got.groups[f.group][f.at]; i != first[tr.keys[i]] {
				t.Fatalf("round %d: item %d is blamed for key %s, want %d", round, i, tr.keys[i], first[tr.keys[i]])
			}
		}
		for k, order := range tr.order {
			if compact := slices.Compact(slices.Clone(order)); !slices.IsSorted(compact) {
				t.Fatalf("round %d: key %s was handled in the order %v", round, k, order)
			}
		}
		if tr.moved {
			t.Fatalf("round %d: a batch was not in feed order", round)
		}
	}
}

func TestNarrowingOneBadDocumentTakesFewCalls(t *testing.T) {
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprintf("k%d", i)
	}
	tr := newTrial(keys, 371)
	if tr.run(false); tr.calls > 25 {
		t.Errorf("%d calls to find 1 of 1000", tr.calls)
	}
}

func TestNarrowingGivesUpOnAnOutage(t *testing.T) {
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprintf("k%d", i)
	}
	tr := newTrial(keys)
	tr.down = true
	got := tr.run(true)
	if tr.calls > 40 || len(got.handled) != 0 {
		t.Errorf("%d calls, %d handled in an outage", tr.calls, len(got.handled))
	}
}
