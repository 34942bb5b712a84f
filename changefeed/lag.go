package changefeed

import "time"

// RangeLag is how far one feed range is behind.
type RangeLag struct {
	Lease string
	Range FeedRange
	Owner string
	// Transactions not yet behind the checkpoint, counted as .NET's estimator
	// does: the service's last LSN less the LSN before the first one unprocessed.
	Transactions int64
	// Age of the oldest change not yet handled; 0 when there is none.
	Age time.Duration
	// Known is false if the numbers could not be determined: the feed could not
	// be read, or was not yet.
	Known bool
	// Health, Failures and Error tell whether the range makes progress.
	Health   Health
	Failures int
	Error    string
	Failing  time.Time
}

// lagState is what a worker's own reads tell about its lag, at no further cost.
type lagState struct {
	known    bool
	endLSN   int64 // the highest the service told of
	readLSN  int64 // of the last item read
	caughtUp bool  // the last read found nothing new
	lastTS   int64 // time of the last item read
	err      error
}

func (s *lagState) read(p *Page, _ time.Time) {
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

func (s *lagState) failed(err error, _ time.Time) { s.err = err }

// lagNow is the worker's lag at this moment.
func (w *worker) lagNow() RangeLag {
	lease := w.own.snapshot()
	lag := RangeLag{
		Lease: w.id, Range: w.rng, Owner: lease.Owner,
		Health: lease.Health, Failures: lease.Failures, Error: lease.Error, Failing: lease.Failing,
	}
	w.mu.Lock()
	state, f := w.lag, w.flow
	w.mu.Unlock()
	lag.Known = state.known && state.err == nil
	var oldest, oldestLSN int64
	waiting := false
	if f != nil {
		oldest, oldestLSN, waiting = f.oldest()
	}
	wall := w.r.opts.Now()
	switch {
	case waiting:
		lag.Age = max(0, wall.Sub(time.Unix(oldest, 0)))
		lag.Transactions = max(0, state.endLSN-(oldestLSN-1))
	case !state.caughtUp && state.endLSN > state.readLSN:
		// Everything read is handled, more is known to be there: the next change
		// is not older than the last one handled.
		lag.Age = max(0, wall.Sub(time.Unix(state.lastTS, 0)))
		lag.Transactions = state.endLSN - state.readLSN
	}
	return lag
}
