package changefeed

import "time"

// trouble is the cause of an unhealthy range, for the lease and the observer.
type trouble struct {
	of       source
	since    time.Time
	failures int
	stuck    bool      // the observer was notified
	unread   time.Time // when reads began to fail, also those of former owners (Lease.UnreadFor); zero: they do not
}

// source is the origin of trouble. Both may have some at once.
type source uint8

const (
	ofReads source = 1 << iota
	ofHandler
)

// health returns the health of a lease with trouble of this source.
func (s source) health() Health {
	if s == ofReads {
		return Unread
	}
	return Retrying
}

// inheritTrouble adopts the trouble of the previous session, even if that was another
// owner's. The cause stays on the lease until reads and deliveries succeed, so that an
// operator sees why the range makes no progress.
func (d *delivery) inheritTrouble() {
	before := d.keeper.snapshot()
	d.state.Lock()
	defer d.state.Unlock()
	if before.Health == Healthy { // also after Operator.Retry: failures count from zero then
		d.trouble = trouble{of: d.trouble.of}
		return
	}
	since := d.clock.Now()
	if !before.Failing.IsZero() {
		since = since.Add(-max(0, d.opts.Now().Sub(before.Failing)))
	}
	unread := d.trouble.unread
	if unread.IsZero() && before.UnreadFor > 0 {
		unread = d.clock.Now().Add(-before.UnreadFor)
	}
	d.trouble = trouble{of: ofReads | ofHandler, since: since, failures: before.Failures, unread: unread}
}

// noteFailure records a failed delivery or read. The lease changes under the same lock as
// the trouble, so that both end in the same state.
func (d *delivery) noteFailure(of source, err error) {
	at, wall := d.clock.Now(), d.opts.Now()
	d.state.Lock()
	t := &d.trouble
	began := at
	if of == ofReads && !d.due.IsZero() {
		began = d.due
	}
	if of == ofReads && t.unread.IsZero() {
		t.unread = began
	}
	first := t.failures == 0
	if first {
		t.since = began
	}
	t.of |= of
	t.failures++
	nowStuck := !t.stuck && at.Sub(t.since) >= d.opts.StuckAfter && (of == ofHandler || noReply(err) || lasts(err))
	t.stuck = t.stuck || nowStuck
	unread, stuck := t.unread, RangeStuck{LeaseRef: d.LeaseRef, Failures: t.failures, Since: wall.Add(-at.Sub(t.since)), Err: err}
	d.keeper.change(func(lease *Lease) urgency {
		if lease.Health != Stopped {
			lease.Health = of.health()
		}
		lease.Failures, lease.Error, lease.Failing = stuck.Failures, clip(err.Error(), maxErrorText), stuck.Since
		if of == ofReads {
			lease.UnreadFor = at.Sub(unread)
		}
		if first || nowStuck {
			return soon
		}
		return later // with the next renewal, because only the count changes
	})
	d.state.Unlock()
	if nowStuck {
		notify(d.obs.RangeStuck, stuck)
	}
}

// noteSuccess records that a source has no trouble any more.
func (d *delivery) noteSuccess(of source) {
	d.state.Lock()
	was := d.trouble.of
	d.trouble.of &^= of
	if of == ofReads {
		d.trouble.unread = time.Time{}
	}
	over := was != 0 && d.trouble.of == 0
	switch {
	case over:
		d.trouble = trouble{}
		d.keeper.change(func(l *Lease) urgency {
			l.Health, l.Failures, l.Error, l.Failing = Healthy, 0, "", time.Time{}
			l.UnreadFor = 0
			return soon
		})
	case was != d.trouble.of:
		d.keeper.change(func(l *Lease) urgency {
			if of == ofReads {
				l.UnreadFor = 0
			}
			if l.Health == of.health() {
				l.Health = d.trouble.of.health()
			}
			return later
		})
	}
	d.state.Unlock()
	if over {
		notify(d.obs.RangeRecovered, RangeRecovered{d.LeaseRef})
	}
}

func (d *delivery) markStopped(err error) {
	d.keeper.change(func(l *Lease) urgency {
		l.Health, l.Error = Stopped, clip(err.Error(), maxErrorText)
		return now
	})
}
