package monitor

import (
	"context"
	"errors"
	"strings"
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

// A restart gives the process new connections. Ranges of other relays are their concern, and
// reads that fail are an outage.
func TestRelayIsNotReadyWhileTheFeedIsSilent(t *testing.T) {
	h := NewHealth(time.Now)
	o := h.Observer()
	o.Balanced(changefeed.Balanced{})
	owned := []changefeed.RangeLag{{Lease: changefeed.Lease{ID: "l"}}}
	lag := func() []changefeed.RangeLag { return owned }
	ref := changefeed.LeaseRef{Lease: "l"}
	o.RangeUnread(changefeed.RangeUnread{LeaseRef: ref, For: time.Minute, Err: context.DeadlineExceeded})
	if err := h.Ready(lag); err != nil {
		t.Errorf("while reads fail: %v", err)
	}
	o.RangeUnread(changefeed.RangeUnread{LeaseRef: ref, Silent: true, For: time.Minute, Err: context.DeadlineExceeded})
	if err := h.Ready(lag); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "not read for 1m0s") {
		t.Errorf("while the feed is silent: %v", err)
	}
	owned = nil
	if err := h.Ready(lag); err != nil {
		t.Errorf("after another relay took the range: %v", err)
	}
	owned = []changefeed.RangeLag{{Lease: changefeed.Lease{ID: "l"}}}
	o.PageRead(changefeed.PageRead{LeaseRef: ref})
	if err := h.Ready(lag); err != nil {
		t.Errorf("after a reply: %v", err)
	}
}
