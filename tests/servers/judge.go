package servers

import (
	"fmt"
	"testing"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/testkit"
)

// Judge waits until the ledger has all published events, and verifies the guarantees.
func (l *Ledger) Judge(t *testing.T, published []relay.Group) {
	t.Helper()
	var run verify.Run
	for _, g := range published {
		run.Aggregates = append(run.Aggregates, verify.Aggregate{ID: g.Key, Version: int64(len(g.Messages)), Sequence: int64(len(g.Messages))})
		for _, m := range g.Messages {
			run.Events = append(run.Events, verify.Event{ID: m.ID, Key: m.Key, Action: m.Action, Version: m.AggregateVersion, Sequence: m.Sequence})
		}
	}
	testkit.Eventually(t, 2*time.Minute, fmt.Sprintf("all %d events", len(run.Events)), func() bool { return l.Count() >= len(run.Events) })
	run.Messages, run.Repeats = l.Messages()
	t.Logf("%s; %d repeats", run.Summary(), run.Repeats)
	for _, breach := range run.Verify() {
		t.Error(breach)
	}
}
