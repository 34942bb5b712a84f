package monitor

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
)

// stalled is the time without a handled batch after which a relay that has read changes is not
// ready, unless the broker refused everything meanwhile. A publisher replaces a silent link and its
// connection within this time.
const stalled = 2 * time.Minute

// sendTimeout is the reason of all publishers for a send that the broker did not answer.
const sendTimeout = "send_timeout"

// Health reports whether the relay works. A relay is not ready before the lease store has
// answered once, and when it owns pending changes, none of them advances and the broker is
// not the cause. It is not ready either while the feed does not reply to its reads of a range,
// because new connections may help. It is ready when idle, on standby, throttled, paused by an
// operator, held back by the store or during an outage, because a restart would not help.
type Health struct {
	now func() time.Time

	mu       sync.Mutex                        // guards what follows
	balanced bool                              // the lease store has answered
	unread   map[string]changefeed.RangeUnread // by lease, until the range is read
	advanced time.Time                         // when a batch was last handled
	waiting  time.Time                         // when the first page after that was read; zero if none was
	idle     time.Time                         // when Ready last found nothing pending
	outage   time.Time                         // when the broker last refused everything
}

// NewHealth returns a Health that is not ready yet.
func NewHealth(now func() time.Time) *Health {
	return &Health{now: now, advanced: now(), unread: map[string]changefeed.RangeUnread{}}
}

// Ready returns nil if the relay is ready, else the reason. lag returns the lag of the ranges
// that it owns.
func (h *Health) Ready(lag func() []changefeed.RangeLag) error {
	h.mu.Lock()
	balanced, advanced, outage := h.balanced, h.advanced, h.outage
	for _, t := range []time.Time{h.waiting, h.idle} { // an idle relay had nothing to send before
		if t.After(advanced) {
			advanced = t
		}
	}
	h.mu.Unlock()
	if !balanced {
		return errors.New("the lease store has not answered yet")
	}
	for _, l := range lag() { // ranges of other relays are their concern
		h.mu.Lock()
		e, silent := h.unread[l.ID]
		h.mu.Unlock()
		if silent && l.Unknown == changefeed.UnknownUnread { // otherwise the feed has replied since, or the range is not due
			return fmt.Errorf("range %s was not read for %s: %w", changefeed.LeaseName(l.ID), e.For.Round(time.Second), e.Err)
		}
	}
	ranges, since := lag(), h.now().Sub(advanced)
	pending := slices.IndexFunc(ranges, func(l changefeed.RangeLag) bool { return l.Known && !l.Paused && l.Transactions > l.Withheld })
	if pending < 0 {
		h.note(&h.idle)
		return nil
	}
	if since < stalled || h.now().Sub(outage) < stalled {
		return nil
	}
	l := ranges[pending]
	return fmt.Errorf("changes are pending and none was sent for %s; lease %s reports: %s", since.Round(time.Second), changefeed.LeaseName(l.ID), l.Error)
}

func (h *Health) note(at *time.Time) {
	h.mu.Lock()
	*at = h.now()
	h.mu.Unlock()
}

// Observer records progress.
func (h *Health) Observer() *changefeed.Observer {
	return &changefeed.Observer{
		Balanced: func(changefeed.Balanced) {
			h.mu.Lock()
			h.balanced = true
			h.mu.Unlock()
		},
		RangeUnread: func(e changefeed.RangeUnread) {
			if e.Silent {
				h.mu.Lock()
				h.unread[e.Lease] = e
				h.mu.Unlock()
			}
		},
		PageRead: func(e changefeed.PageRead) {
			h.mu.Lock()
			delete(h.unread, e.Lease)
			if e.Items > 0 && h.waiting.IsZero() {
				h.waiting = h.now()
			}
			h.mu.Unlock()
		},
		BatchHandled: func(changefeed.BatchHandled) {
			h.mu.Lock()
			h.advanced, h.waiting = h.now(), time.Time{}
			h.mu.Unlock()
		},
		BatchFailed: func(e changefeed.BatchFailed) {
			if relay.ClassOf(e.Err) != relay.Refused && relay.ReasonOf(e.Err) != sendTimeout {
				h.note(&h.outage)
			}
		},
	}
}
