package changefeed

import (
	"context"
	"errors"
	"time"
)

// read reads pages ahead of the lanes, from the checkpoint on, until ctx ends or
// the range turns out to have split (*SplitError). Every other error is tried
// again in place: the lease stays.
func (w *worker) read(ctx context.Context, f *flow) error {
	position := w.own.snapshot().position()
	retry := backoff{min: w.r.opts.RetryMin, max: w.r.opts.RetryMax}
	pace := newPoller(&w.r.opts, w.r.clock.Now())
	for {
		if err := f.waitRoom(ctx); err != nil {
			return err
		}
		began := w.r.clock.Now()
		page, err := w.r.feed.Read(ctx, ReadRequest{
			Range: w.rng, Continuation: position.Continuation, Since: position.Since, MaxItems: max(0, w.r.opts.MaxItems),
		})
		ended := w.r.clock.Now()
		var split *SplitError
		switch {
		case ctx.Err() != nil:
			if err == nil {
				release(page)
			}
			return context.Cause(ctx)
		case errors.As(err, &split):
			return split
		case err != nil:
			pause := retry.next(err)
			w.readFailed(err, ended)
			w.r.obs.readFailed(ReadFailed{Lease: w.id, Range: w.rng, Err: err, Pause: pause})
			if err := sleep(ctx, w.r.clock, pause, nil); err != nil {
				return err
			}
			continue
		}
		retry.reset()
		w.pageRead(page, began, ended)
		moved := page.Continuation != "" && page.Continuation != position.Continuation
		if moved {
			position.Continuation, position.Since = page.Continuation, time.Time{}
		}
		caughtUp, items := page.CaughtUp || upToEnd(page), len(page.Items)
		if items > 0 || moved {
			f.admit(page) // the page is the flow's from here on
		} else {
			release(page)
		}
		if items > 0 {
			pace.changed(ended, items)
		}
		if !caughtUp && (items > 0 || moved) {
			continue
		}
		if err := sleep(ctx, w.r.clock, pace.pause(ended), w.wakeup); err != nil {
			return err
		}
		if err := f.waitLane(ctx, w.r.opts.PollMax, w.wakeup); err != nil {
			return err
		}
	}
}

// pageRead notes a reply for the lag and for observers.
func (w *worker) pageRead(p *Page, began, ended time.Time) {
	took := ended.Sub(began)
	w.r.timing.Read.observe(took)
	w.r.timing.Decode.observe(p.Decode)
	w.mu.Lock()
	w.lag.read(p, ended)
	w.mu.Unlock()
	w.recovered(nil)
	if p.Doubt != nil {
		w.r.obs.leaseError(LeaseError{Lease: w.id, Op: "check the feed", Err: p.Doubt})
	}
	w.r.obs.pageRead(PageRead{
		Lease: w.id, Range: w.rng, Items: len(p.Items), Bytes: p.Bytes, CaughtUp: p.CaughtUp,
		RequestCharge: p.RequestCharge, Took: took, Decode: p.Decode,
	})
}

// readFailed notes an error for the lag: from here on the range may be behind. One
// that time will not mend makes the range unhealthy.
func (w *worker) readFailed(err error, at time.Time) {
	w.mu.Lock()
	w.lag.failed(err, at)
	w.mu.Unlock()
	if errors.Is(err, ErrPermanent) {
		w.failing(nil, err)
	}
}

// upToEnd reports whether the page ends with the last change the service knew: the
// read that would say so can wait for the next poll.
func upToEnd(p *Page) bool {
	n := len(p.Items)
	return n > 0 && p.EndLSN > 0 && p.Items[n-1].LSN >= p.EndLSN
}

// poller is the pause between reads of a range with nothing new: short while
// changes keep coming, growing with the time since the last one. Where changes
// come faster than min it is the time between two of them, so that reads cost no
// more than the writes that cause them.
type poller struct {
	min, max, busy, idleAfter time.Duration
	last                      time.Time     // the last change, or the start
	gap                       time.Duration // between two changes, on average of late
	pauseNow                  time.Duration
}

func newPoller(o *Options, now time.Time) *poller {
	return &poller{min: o.PollMin, max: o.PollMax, busy: o.PollBusy, idleAfter: o.PollIdleAfter, last: now, gap: o.PollMin, pauseNow: o.PollMin}
}

// changed notes a page with items. A burst counts as a few changes: what comes at
// once says little about when the next one will.
func (p *poller) changed(now time.Time, items int) {
	const most, weight = 8, 8
	per := min(now.Sub(p.last), p.min) / time.Duration(min(items, most))
	p.gap += (per - p.gap) / weight
	p.last, p.pauseNow = now, p.min
}

func (p *poller) pause(now time.Time) time.Duration {
	silence := now.Sub(p.last)
	switch {
	case silence >= p.idleAfter:
		p.pauseNow = min(p.pauseNow+p.pauseNow/2, p.max)
	case silence < p.min:
		return jitter(min(max(p.gap, p.busy), p.min))
	default: // a change that comes after a silence can wait for a hundredth of it
		p.pauseNow = min(max(p.min, silence/100), p.max)
	}
	return jitter(p.pauseNow)
}
