package monitor

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
)

// stalled is how long a relay may own pending changes without sending any before
// it counts as stuck.
const stalled = 2 * time.Minute

// Health tells whether the relay does its work. It is not ready before its first
// round trip to the lease store, and when it owns ranges with pending changes,
// none advances and the broker is not to blame. It is ready when idle, on
// standby, throttled or waiting out an outage: a restart would cure nothing.
type Health struct {
	now func() time.Time

	mu       sync.Mutex // guards what follows
	balanced bool       // the lease store has answered
	advanced time.Time  // when a batch was last handled
	outage   time.Time  // when the broker last refused everything
}

// NewHealth begins as not ready.
func NewHealth(now func() time.Time) *Health { return &Health{now: now, advanced: now()} }

// Ready is the readiness probe of a relay that owns ranges with this lag.
func (h *Health) Ready(lag func() []changefeed.RangeLag) error {
	h.mu.Lock()
	balanced, advanced, outage := h.balanced, h.advanced, h.outage
	h.mu.Unlock()
	if !balanced {
		return errors.New("the lease store has not answered yet")
	}
	since := h.now().Sub(advanced)
	if since < stalled || h.now().Sub(outage) < stalled {
		return nil
	}
	for _, l := range lag() {
		if l.Known && l.Transactions > 0 {
			return fmt.Errorf("changes are pending and none was sent for %s; the lease %s says: %s", since.Round(time.Second), changefeed.LeaseName(l.ID), l.Error)
		}
	}
	return nil
}

func (h *Health) note(at *time.Time) {
	h.mu.Lock()
	*at = h.now()
	h.mu.Unlock()
}

// Observer notes progress.
func (h *Health) Observer() *changefeed.Observer {
	return &changefeed.Observer{
		Balanced: func(changefeed.Balanced) {
			h.mu.Lock()
			h.balanced = true
			h.mu.Unlock()
		},
		BatchHandled: func(changefeed.BatchHandled) { h.note(&h.advanced) },
		BatchFailed: func(e changefeed.BatchFailed) {
			if relay.ClassOf(e.Err) != relay.Refused {
				h.note(&h.outage)
			}
		},
	}
}
