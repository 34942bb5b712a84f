package changefeed

import "time"

// trouble is what makes a range unhealthy, for the lease and the observer.
type trouble struct {
	of       source
	since    time.Time
	failures int
	stuck    bool // the observer was told
}

// source is where trouble comes from; both may have some.
type source uint8

const (
	ofReads source = 1 << iota
	ofHandler
)

// inheritTrouble takes over the trouble of the session before, be it another owner's: its cause
// stays on the lease until reads and deliveries succeed.
func (d *delivery) inheritTrouble() {
	before := d.keeper.snapshot()
	d.state.Lock()
	defer d.state.Unlock()
	if before.Health == Healthy { // as an operator leaves it who wants another try: what fails now counts anew
		d.trouble = trouble{of: d.trouble.of}
		return
	}
	since := d.clock.Now()
	if !before.Failing.IsZero() {
		since = since.Add(-max(0, d.opts.Now().Sub(before.Failing)))
	}
	d.trouble = trouble{of: ofReads | ofHandler, since: since, failures: before.Failures}
}

// noteFailure notes a failed delivery or read. The lease changes under the lock that the
// trouble changes under, so that the last word in one is the last in the other.
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
	sayStuck := !t.stuck && at.Sub(t.since) >= d.opts.StuckAfter
	t.stuck = t.stuck || sayStuck
	stuck := RangeStuck{LeaseRef: d.LeaseRef, Failures: t.failures, Since: wall.Add(-at.Sub(t.since)), Err: err}
	d.keeper.change(func(lease *Lease) urgency {
		if lease.Health != Stopped {
			lease.Health = Retrying
		}
		lease.Failures, lease.Error, lease.Failing = stuck.Failures, clip(err.Error(), maxErrorText), stuck.Since
		if first || sayStuck {
			return soon
		}
		return later
	})
	d.state.Unlock()
	if sayStuck {
		tell(d.obs.RangeStuck, stuck)
	}
}

// noteSuccess notes that a source has no trouble any more.
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
		tell(d.obs.RangeRecovered, RangeRecovered{d.LeaseRef})
	}
}

func (d *delivery) markStopped(err error) {
	d.keeper.change(func(l *Lease) urgency {
		l.Health, l.Error = Stopped, clip(err.Error(), maxErrorText)
		return now
	})
}

// RangeLag is how far the feed range of a lease is behind.
type RangeLag struct {
	Lease
	// Transactions not yet behind the checkpoint, counted as .NET's estimator
	// does: the service's last LSN less the LSN before the first one unprocessed.
	Transactions int64
	// Age of the oldest change not yet handled; 0 when there is none.
	Age time.Duration
	// Known is false if the numbers could not be determined: the feed could not
	// be read, was not yet, or is not read now, as in a pause, and nothing waits
	// that was read before.
	Known bool
}

// lagState is what a worker's own reads tell about its lag, at no further cost.
type lagState struct {
	known    bool
	endLSN   int64 // the highest the service told of
	readLSN  int64 // of the last item read that was not dropped
	caughtUp bool  // the last read found nothing new
	lastTS   int64 // time of the last item read
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

// noteDropped notes that what was read is read again from a change on.
func (d *delivery) noteDropped(from Item) {
	d.state.Lock()
	defer d.state.Unlock()
	d.lag.readLSN, d.lag.lastTS, d.lag.caughtUp = from.LSN-1, from.Timestamp, false
}

// forgetLag notes that the position was moved: what was read tells nothing of it.
func (d *delivery) forgetLag() {
	d.state.Lock()
	defer d.state.Unlock()
	d.lag = lagState{}
}

// lagIn is the lag at this moment; f is the flow of the session, nil between sessions.
func (d *delivery) lagIn(f *flow) RangeLag {
	var oldest Item
	waiting := false
	if f != nil {
		oldest, waiting = f.window.oldest()
	}
	d.state.Lock() // after the window: what it dropped meanwhile is noted
	state := d.lag
	d.state.Unlock()
	more := !state.caughtUp && state.endLSN > state.readLSN
	lag := RangeLag{Lease: d.keeper.snapshot(), Known: state.known && state.err == nil && (f != nil || more)}
	wall := d.opts.Now()
	switch {
	case waiting:
		lag.Age = max(0, wall.Sub(oldest.Time()))
		lag.Transactions = transactions(d.feed, max(0, state.endLSN-(oldest.LSN-1)))
	case more:
		// Nothing is in hand, more is known to be there: the next change is not older
		// than the last one handled, or is the first one dropped.
		lag.Age = max(0, wall.Sub(time.Unix(state.lastTS, 0)))
		lag.Transactions = transactions(d.feed, state.endLSN-state.readLSN)
	}
	return lag
}
