package monitor

import (
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
)

// A relay is ready while the broker refuses everything, and not while the broker does not answer.
func TestRelayIsNotReadyWhileSendsTimeOut(t *testing.T) {
	for reason, ready := range map[string]bool{"server_busy": true, "send_timeout": false} {
		synctest.Test(t, func(t *testing.T) {
			h := NewHealth(time.Now)
			o := h.Observer()
			o.Balanced(changefeed.Balanced{})
			o.BatchHandled(changefeed.BatchHandled{})
			pending := func() []changefeed.RangeLag { return []changefeed.RangeLag{{Known: true, Transactions: 3}} }
			for range 20 {
				time.Sleep(15 * time.Second)
				o.BatchFailed(changefeed.BatchFailed{Err: &relay.Error{Class: relay.Outage, Reason: reason}})
			}
			if err := h.Ready(pending); (err == nil) != ready {
				t.Errorf("%s: %v, want ready %t", reason, err, ready)
			}
			o.BatchHandled(changefeed.BatchHandled{})
			if err := h.Ready(pending); err != nil {
				t.Errorf("%s: after a handled batch: %v", reason, err)
			}
		})
	}
}
