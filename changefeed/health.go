package changefeed

import "time"

// trouble is the cause of an unhealthy range, for the lease and the observer.
type trouble struct {
	of       source
	since    time.Time
	failures int
	stuck    bool // the observer was notified
}

// source is the origin of trouble. Both may have some at once.
type source uint8

const (
	ofReads source = 1 << iota
	ofHandler
)

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
	d.trouble = trouble{of: ofReads | ofHandler, since: since, failures: before.Failures}
}

// noteFailure records a failed delivery or read. The lease changes under the same lock as
// the trouble, so that both end in the same state.
func (d *delivery) noteFailure(of source, err error) {
	at, wall := d.clock.Now(), d.opts.Now()
	d.state.Lock()
	t := &d.trouble
	first := t.failures == 0
	if first {
		t.since = at
	}
	t.of |= of
	t.failures++
	nowStuck := !t.stuck && at.Sub(t.since) >= d.opts.StuckAfter
	t.stuck = t.stuck || nowStuck
	stuck := RangeStuck{LeaseRef: d.LeaseRef, Failures: t.failures, Since: wall.Add(-at.Sub(t.since)), Err: err}
	d.keeper.change(func(lease *Lease) urgency {
		if lease.Health != Stopped {
			lease.Health = Retrying
		}
		lease.Failures, lease.Error, lease.Failing = stuck.Failures, clip(err.Error(), maxErrorText), stuck.Since
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
	over := was != 0 && d.trouble.of == 0
	if over {
		d.trouble = trouble{}
		d.keeper.change(func(l *Lease) urgency {
			l.Health, l.Failures, l.Error, l.Failing = Healthy, 0, "", time.Time{}
			return soon
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

// RangeLag is the lag of a lease's feed range.
type RangeLag struct {
	Lease
	// Transactions that the checkpoint has not passed, counted as .NET's estimator does:
	// the service's last LSN less the LSN before the first unprocessed one.
	Transactions int64
	// Age of the oldest change not yet handled; 0 when there is none.
	Age time.Duration
	// Known is false if the numbers could not be determined: the last read failed or is not
	// answered, or the range was not read yet, or it is not read now, as in a pause, and no
	// change that was read is waiting.
	Known bool
	// Read is the time of the last reply of the feed to this owner; zero if there was none.
	Read time.Time
}

// lagState is the lag information from a worker's own reads, which costs no request.
type lagState struct {
	known    bool
	at       time.Time // of the last reply, by the wall clock
	endLSN   int64     // the highest one reported by the service
	readLSN  int64     // of the last item read and not dropped
	caughtUp bool      // the last read returned nothing new
	lastTS   int64     // time of the last item read
	err      error
}

func (s *lagState) read(p *Page) {
	s.known, s.err = true, nil
	s.caughtUp = p.CaughtUp
	s.endLSN = max(s.endLSN, p.EndLSN)
	if lsn, changed := lastOf(p.Items); lsn > 0 {
		s.readLSN, s.lastTS = max(s.readLSN, lsn), changed
		s.endLSN = max(s.endLSN, lsn)
	}
	if p.CaughtUp {
		s.readLSN = max(s.readLSN, s.endLSN)
	}
}

// noteDropped records that changes from this one on will be read again.
func (d *delivery) noteDropped(from Item) {
	d.state.Lock()
	defer d.state.Unlock()
	d.lag.readLSN, d.lag.lastTS, d.lag.caughtUp = from.LSN-1, from.Timestamp, false
}

// forgetLag resets the lag because the position was moved.
func (d *delivery) forgetLag() {
	d.state.Lock()
	defer d.state.Unlock()
	d.lag = lagState{}
}

// lagIn returns the current lag. f is the flow of the session, nil between sessions.
func (d *delivery) lagIn(f *flow) RangeLag {
	var oldest Item
	waiting := false
	if f != nil {
		oldest, waiting = f.window.oldest()
	}
	d.state.Lock() // after the window, so that a drop in the meantime is seen
	state := d.lag
	d.state.Unlock()
	more := !state.caughtUp && state.endLSN > state.readLSN
	lag := RangeLag{Lease: d.keeper.snapshot(), Read: state.at, Known: state.known && state.err == nil && (f != nil || more)}
	wall := d.opts.Now()
	switch {
	case waiting:
		lag.Age = max(0, wall.Sub(oldest.Time()))
		lag.Transactions = transactions(d.feed, max(0, state.endLSN-(oldest.LSN-1)))
	case more:
		// Nothing is in flight, but more changes are known to exist. The next change is not
		// older than the last one handled, or is the first one dropped.
		lag.Age = max(0, wall.Sub(time.Unix(state.lastTS, 0)))
		lag.Transactions = transactions(d.feed, state.endLSN-state.readLSN)
	}
	return lag
}
