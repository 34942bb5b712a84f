package changefeed

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
)

// RangeLag is the lag of a lease's feed range.
type RangeLag struct {
	Lease
	// Transactions that the checkpoint has not passed, counted as .NET's estimator does:
	// the service's last LSN less the LSN before the first unprocessed one.
	Transactions int64
	// Age of the oldest change not yet handled, and its time; zero when there is none.
	Age    time.Duration
	Oldest time.Time
	// Known is false if the numbers could not be determined. Unknown is the reason then.
	Known   bool
	Unknown Unknown
	// Withheld is how many of the transactions the feed must not return yet; see Page.Withheld.
	Withheld int64
	// Paused is true if an operator has paused the range or all ranges. The numbers are then
	// measured regularly, at the checkpoint, with a read that delivers nothing.
	Paused bool
	// Read is the time of the last reply of the feed to this owner; zero if there was none.
	Read time.Time
}

// Unknown is the reason for which a lag is not known.
type Unknown string

// The reasons.
const (
	UnknownStarting Unknown = "starting" // the range was not read yet
	UnknownUnread   Unknown = "unread"   // the feed does not reply
	UnknownFailed   Unknown = "failed"   // the last read failed
	UnknownLost     Unknown = "lost"     // the feed ends before the position, see AheadError
)

// unknown returns the reason that a failed read gives.
func unknown(err error) Unknown {
	if _, ahead := errors.AsType[*AheadError](err); ahead {
		return UnknownLost
	}
	if noReply(err) {
		return UnknownUnread
	}
	return UnknownFailed
}

// lagState is the lag information from a worker's own reads, which costs no request.
type lagState struct {
	known    bool
	at       time.Time // of the last reply, by the wall clock
	term     string    // Page.Term of the last reply
	endLSN   int64     // the highest one reported by the service in this term
	readLSN  int64     // of the last item read and not dropped
	caughtUp bool      // the last read returned nothing new
	lastTS   int64     // time of the last item read
	err      error
	withheld Page     // its last values of Withheld and WithheldSince
	paused   RangeLag // measured in a pause
}

func (s *lagState) read(p *Page) {
	s.known, s.err = true, nil
	if p.Term != "" && p.Term != s.term {
		s.term, s.endLSN = p.Term, 0
	}
	// A replica that ends before the end that was reported is delayed.
	s.caughtUp = p.CaughtUp && (p.EndLSN == 0 || p.EndLSN >= s.endLSN)
	s.endLSN = max(s.endLSN, p.EndLSN)
	s.withheld = Page{Withheld: p.Withheld, WithheldSince: p.WithheldSince}
	if lsn, changed := p.last(); lsn > 0 {
		s.readLSN, s.lastTS = max(s.readLSN, lsn), changed
		s.endLSN = max(s.endLSN, lsn)
	}
	if p.CaughtUp {
		s.readLSN = max(s.readLSN, cmp.Or(p.EndLSN, s.endLSN))
	}
}

// noteDropped records that changes from this one on will be read again.
func (d *delivery) noteDropped(from Item) {
	d.state.Lock()
	defer d.state.Unlock()
	d.lag.readLSN, d.lag.lastTS, d.lag.caughtUp = from.LSN-1, from.Timestamp, false
}

// forgetLag makes the lag unknown until the next read.
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
	state, unread := d.lag, d.unreadLocked(d.clock.Now()) > 0
	d.state.Unlock()
	wall := d.opts.Now()
	lag := RangeLag{Lease: d.keeper.snapshot(), Read: state.at}
	more := !state.caughtUp && state.endLSN > state.readLSN
	last := cmp.Or(state.lastTS, lag.ChangeTime) // 0 if no change was ever read
	switch {
	case state.err != nil:
		lag.Unknown = unknown(state.err)
	case unread:
		lag.Unknown = UnknownUnread
	case f == nil && state.paused.Known:
		lag.add(state.paused.Transactions, state.paused.Oldest, wall)
		lag.Withheld = state.paused.Withheld
	case !state.known, f == nil && !more, more && !waiting && last == 0: // without a change that was read, nobody knows the age
		lag.Unknown = UnknownStarting
	}
	lag.Known = lag.Unknown == ""
	switch {
	case f == nil && state.paused.Known:
		return lag
	case waiting:
		lag.add(transactions(d.feed, max(0, state.endLSN-(oldest.LSN-1))), oldest.Time(), wall)
	case more && last != 0:
		// Nothing is in flight, but more changes are known to exist. The next change is not
		// older than the last one handled, or is the first one dropped.
		lag.add(transactions(d.feed, state.endLSN-state.readLSN), time.Unix(last, 0), wall)
	}
	lag.withhold(&state.withheld, wall)
	return lag
}

// add adds transactions that were not handled, the oldest of a time.
func (l *RangeLag) add(n int64, oldest, wall time.Time) {
	l.Transactions += n
	if n > 0 && (l.Oldest.IsZero() || oldest.Before(l.Oldest)) {
		l.Oldest, l.Age = oldest, max(0, wall.Sub(oldest))
	}
}

// withhold adds the transactions that the feed withholds.
func (l *RangeLag) withhold(p *Page, wall time.Time) {
	l.Withheld += p.Withheld
	l.add(p.Withheld, p.WithheldSince, wall)
}

// measure measures the lag of l.Lease from its checkpoint, with one read of the feed or a few.
func (l *RangeLag) measure(ctx context.Context, feed Feed, now func() time.Time) error {
	lease := l.Lease
	if lease.Lost != 0 {
		l.Unknown = UnknownLost
		return lease.ahead(max(lease.Reached, lease.LSN, lease.Delivered))
	}
	err := l.measureFrom(ctx, feed, now, lease.position())
	if _, ahead := errors.AsType[*AheadError](err); ahead { // once, it may be a delayed replica
		*l = RangeLag{Lease: lease}
		err = l.measureFrom(ctx, feed, now, lease.position())
	}
	if err != nil {
		l.Unknown = unknown(err)
	}
	l.Known = err == nil
	return err
}

// measureFrom adds the changes after a position. One item is enough, because EndLSN gives the
// number of changes. A range that split is measured by its parts.
func (l *RangeLag) measureFrom(ctx context.Context, feed Feed, now func() time.Time, at RangeToken) error {
	page, err := readPastOthers(ctx, feed, &at)
	if split, ok := errors.AsType[*SplitError](err); ok && len(split.Children) > 1 {
		for _, child := range split.Children {
			if err := l.measureFrom(ctx, feed, now, RangeToken{Range: child, Continuation: at.Continuation, Since: at.Since}); err != nil {
				return err
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer release(page)
	if ahead := page.behind(max(l.Reached, l.LSN, l.Delivered)); ahead != nil {
		return ahead
	}
	if len(page.Items) > 0 {
		first := &page.Items[0]
		l.add(transactions(feed, max(1, page.EndLSN-(first.LSN-1))), first.Time(), now())
	}
	l.withhold(page, now())
	return nil
}

// readPastOthers returns the first page after a position that has items or ends the feed, and moves the
// position to the page's beginning. Pages before have only deletes, or documents of other ranges. There
// may be many, so each is larger than the one before.
func readPastOthers(ctx context.Context, feed Feed, at *RangeToken) (*Page, error) {
	const largest = 1000
	for most := 1; ; most = min(8*most, largest) {
		page, err := feed.Read(ctx, ReadRequest{Range: at.Range, Continuation: at.Continuation, Since: at.Since, MaxItems: most})
		if err != nil || len(page.Items) > 0 || page.CaughtUp || page.Continuation == "" || page.Continuation == at.Continuation {
			return page, err
		}
		at.Continuation, at.Since = page.Continuation, time.Time{}
		release(page)
	}
}

// measureInPause measures the lag at intervals until stop is called, because nothing is read in a
// pause. stop waits for a measurement in progress to end, and discards the result.
func (d *delivery) measureInPause() (stop func()) {
	ctx, cancel := context.WithCancel(d.ctx)
	var measuring sync.WaitGroup
	measuring.Go(func() {
		for ctx.Err() == nil {
			lag := RangeLag{Lease: d.keeper.snapshot()}
			err := lag.measure(ctx, d.feed, d.opts.Now)
			d.state.Lock()
			d.lag.err, d.lag.paused = err, lag
			if err == nil {
				d.lag.at = d.opts.Now()
			}
			d.state.Unlock()
			_ = sleep(ctx, d.clock, d.opts.Renew, nil)
		}
	})
	return func() {
		cancel()
		measuring.Wait()
		d.forgetLag() // that of before the pause is out of date
	}
}
