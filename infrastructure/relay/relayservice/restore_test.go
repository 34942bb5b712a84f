package relayservice_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
)

// A restore within the account keeps the container's name and resource id, and counts changes
// again. The relay must not look idle; after a restart from the beginning everything is sent.
func TestRestoredContainerHoldsTheRelayUntilRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		stop := b.run()
		for n := 1; n <= 50; n++ {
			b.put("k", fmt.Sprintf("e%d", n), n)
		}
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		b.feed.Restore(0)
		stop = b.run()
		for n := 1; n <= 5; n++ {
			b.put("new", fmt.Sprintf("n%d", n), n)
		}
		time.Sleep(24 * time.Hour)
		operator := changefeed.NewOperator(b.store.Feed, b.store.Leases, &changefeed.OperatorOptions{Processor: "feedbox"})
		lag, err := operator.Lag(t.Context())
		if err != nil || len(lag) != 1 || lag[0].Known || !strings.Contains(lag[0].Error, "the checkpoint is ahead of the feed") {
			t.Errorf("the operator's lag %+v, error %v; want it unknown, and the reason", lag, err)
		}
		if got := b.sent(); strings.Contains(got, "n") {
			t.Errorf("sent before the restart: %s", got)
		}
		if err := operator.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := b.sent(); !strings.HasSuffix(got, " e50 n1 n2 n3 n4 n5") {
			t.Errorf("sent after the restart: %s", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
