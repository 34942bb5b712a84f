package changefeed

import (
	"cmp"
	"errors"
	"time"
)

// A range that nobody reads looks like one without changes. Therefore each read of the feed
// that is due and not answered is watched, and so is each part of the scope without an owner:
//
//	read is due ── reply ──▶ not due until the next read
//	     │
//	     └─ no reply for unreadAfter ─▶ RangeUnread, health Unread, lag unknown
//	                                    └─ next cycle ─▶ release, to another host if there is one
//
// A range whose reads fail is reported, too, but keeps its owner: the error is a reply, and
// another host would get the same.

// errSilent is the cause if reads of the feed neither succeed nor fail.
var errSilent = errors.New("the feed does not reply")

// readDue records that a read is due, and begins to watch it.
func (d *delivery) readDue(now time.Time) {
	d.state.Lock()
	defer d.state.Unlock()
	if d.due.IsZero() {
		d.due, d.unwatch = now, d.clock.AfterFunc(d.opts.unreadAfter(), d.reportUnread)
	}
}

// readAnswered records that the feed replied, or that no read is due any more.
func (d *delivery) readAnswered() {
	d.state.Lock()
	defer d.state.Unlock()
	if !d.due.IsZero() {
		d.unwatch()
		d.due, d.unwatch = time.Time{}, nil
	}
}

// unreadLocked returns for how long the range was not read, 0 if that is no trouble. Called
// with state.
func (d *delivery) unreadLocked(now time.Time) time.Duration {
	if silent := now.Sub(d.due); !d.due.IsZero() && silent >= d.opts.unreadAfter() {
		return silent
	}
	return 0
}

// reportUnread reports that the range is not read, and again while that lasts.
func (d *delivery) reportUnread() {
	d.state.Lock()
	now := d.clock.Now()
	silent, err := d.unreadLocked(now), cmp.Or(d.lag.err, errSilent)
	if silent > 0 {
		d.unwatch = d.clock.AfterFunc(d.opts.unreadAfter(), d.reportUnread)
	}
	d.state.Unlock()
	if silent == 0 {
		return
	}
	e := RangeUnread{LeaseRef: d.LeaseRef, Owner: d.opts.Host, Silent: noReply(err), For: silent, Err: err}
	d.noteFailure(ofReads, err)
	notify(d.obs.RangeUnread, e)
	d.relist.send()
}

// givesUp reports whether another host should try to read the range. If no host can, the lease
// moves ever more rarely: an owner keeps it for as long as all owners before it together. Failures of
// its handler do not count, because otherwise a host whose handler has failed for hours would keep a
// range for hours that it cannot read.
func (d *delivery) givesUp(now time.Time) bool {
	d.state.Lock()
	defer d.state.Unlock()
	silent := d.unreadLocked(now)
	return silent > 0 && (d.lag.err == nil || noReply(d.lag.err)) && 2*silent >= now.Sub(d.trouble.unread)
}

// noReply reports whether an error of a read means that the feed did not reply.
func noReply(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, errSilent) || errors.As(err, &timeout) && timeout.Timeout()
}
