//go:build faults

package crash

import (
	"testing"
	"time"

	"feedbox/tests/testkit"
)

// wantTakeover records the durations of takeovers and fails the test if their p99 exceeds limit.
func wantTakeover(t *testing.T, took []time.Duration, limit time.Duration, r *testkit.Result) {
	t.Helper()
	r.TakeoverP50, r.TakeoverP99 = quantile(took, 0.5), quantile(took, 0.99)
	if len(took) == 0 {
		t.Error("no takeover was measured")
		return
	}
	t.Logf("%d takeovers: p50 %.2f s, p99 %.2f s, longest %s", len(took), r.TakeoverP50, r.TakeoverP99, took[len(took)-1])
	if r.TakeoverP99 > limit.Seconds() {
		t.Errorf("takeover p99 %.2f s, want at most %s", r.TakeoverP99, limit)
	}
}

// batchSize is FEEDBOX_RELAY_MAX_ITEMS, the maximum size of a page unless one transaction is larger.
const batchSize = 100
