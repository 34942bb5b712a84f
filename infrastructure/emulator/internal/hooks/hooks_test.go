package hooks

import (
	"sync"
	"testing"
)

func TestTheFirstHookThatReturnsAFaultDecides(t *testing.T) {
	var l List[int, string]
	if !l.Empty() || l.Ask(new(int)) != nil {
		t.Error("a new list is not empty")
	}
	even := l.Add(If(func(n *int) bool { return *n%2 == 0 }, Always[int]("even")))
	l.Add(Times[int](2, "first"))
	last := l.Add(Times[int](1, "second"))
	for i, want := range []string{"even", "first", "even", "first", "even", "second", "even", ""} {
		if got := l.Ask(&i); (got == nil) != (want == "") || got != nil && *got != want {
			t.Errorf("call %d: want %q, got %v", i, want, got)
		}
	}
	even()
	even()
	last()
	if l.Ask(new(int)) != nil || l.Empty() {
		t.Error("a hook that was removed decides, or took another one along")
	}
	l.Clear()
	if !l.Empty() {
		t.Error("not empty after Clear")
	}
}

func TestTimesCountsCallsOfManyGoroutines(t *testing.T) {
	var l List[int, string]
	l.Add(Times[int](50, "x"))
	var faults sync.Map
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			l.Add(Always[int]("y"))()
			if f := l.Ask(new(int)); f != nil && *f == "x" {
				faults.Store(i, true)
			}
		})
	}
	all.Wait()
	n := 0
	faults.Range(func(any, any) bool { n++; return true })
	if n != 50 {
		t.Errorf("%d faults, want 50", n)
	}
}
