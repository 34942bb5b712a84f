package wiring

import (
	"runtime/debug"
	"testing"
)

// CollectLess applies its settings except where the operator has set a variable.
func TestCollectLessKeepsTheOperatorsSettings(t *testing.T) {
	const percent, limit = 123, 1 << 40
	defer debug.SetGCPercent(debug.SetGCPercent(percent))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(limit))
	for _, c := range []struct {
		environ   []string
		wantGC    int
		wantLimit int64
	}{
		{[]string{"GOGC=50", "GOMEMLIMIT=1GiB"}, percent, limit},
		{[]string{"GOGC=50"}, percent, GarbageLimit},
		{[]string{"GOGC=", "GOMEMLIMIT=1GiB"}, GarbagePercent, limit},
		{nil, GarbagePercent, GarbageLimit},
	} {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
		CollectLess(c.environ)
		if got := debug.SetGCPercent(percent); got != c.wantGC {
			t.Errorf("environment %q: GC percent %d, want %d", c.environ, got, c.wantGC)
		}
		if got := debug.SetMemoryLimit(-1); got != c.wantLimit {
			t.Errorf("environment %q: memory limit %d, want %d", c.environ, got, c.wantLimit)
		}
	}
}
