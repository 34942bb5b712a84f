package wiring

import (
	"context"
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

// health tells whether the relay does its work. It is not ready before its first
// round trip to the lease store, and when it owns ranges with pending changes,
// none advances and the broker is not to blame. It is ready when idle, on
// standby, throttled or waiting out an outage: a restart would cure nothing.
type health struct {
	now func() time.Time
	lag func() []changefeed.RangeLag

	mu       sync.Mutex // guards what follows
	balanced bool       // the lease store has answered
	advanced time.Time  // when a batch was last handled
	outage   time.Time  // when the broker last refused everything
}

func newHealth(now func() time.Time) *health { return &health{now: now, advanced: now()} }

// ready is the readiness probe.
func (h *health) ready(context.Context) error {
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
	for _, l := range h.lag() {
		if l.Known && l.Transactions > 0 {
			return fmt.Errorf("changes are pending and none was sent for %s; the lease %s says: %s", since.Round(time.Second), l.Lease, l.Error)
		}
	}
	return nil
}

// observe notes progress.
func (h *health) observe(o *changefeed.Observer) *changefeed.Observer {
	handled, failed := o.BatchHandled, o.BatchFailed
	o.Balanced = func(changefeed.Balanced) {
		h.mu.Lock()
		h.balanced = true
		h.mu.Unlock()
	}
	o.BatchHandled = func(e changefeed.BatchHandled) {
		h.mu.Lock()
		h.advanced = h.now()
		h.mu.Unlock()
		handled(e)
	}
	o.BatchFailed = func(e changefeed.BatchFailed) {
		if relay.ClassOf(e.Err) != relay.Refused {
			h.mu.Lock()
			h.outage = h.now()
			h.mu.Unlock()
		}
		failed(e)
	}
	return o
}
