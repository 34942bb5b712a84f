package changefeed

import (
	"context"
	"errors"
	"time"
)

// read reads pages ahead of the lanes, from the checkpoint on, until ctx ends (nil) or the
// range turns out to have split. It retries every other error in place and keeps the lease.
func (d *delivery) read(ctx context.Context, f *flow) *SplitError {
	position := d.keeper.snapshot().position()
	retry := backoff{min: d.opts.RetryMin, max: d.opts.RetryMax}
	poll := poller{Options: &d.opts, last: d.clock.Now(), gap: d.opts.PollMin, pauseNow: d.opts.PollMin}
	for f.window.waitRoom(ctx) {
		began := d.clock.Now()
		page, err := d.feed.Read(ctx, ReadRequest{
			Range: d.Range, Continuation: position.Continuation, Since: position.Since, MaxItems: max(0, d.opts.MaxItems),
		})
		ended := d.clock.Now()
		var split *SplitError
		switch {
		case ctx.Err() != nil:
			if err == nil {
				release(page)
			}
			return nil
		case errors.As(err, &split):
			return split
		case err != nil:
			pause := retry.next(err)
			d.readFailed(err)
			notify(d.obs.ReadFailed, ReadFailed{LeaseRef: d.LeaseRef, Err: err, Pause: pause})
			_ = sleep(ctx, d.clock, pause, nil) // waitRoom checks ctx
			continue
		}
		retry.reset()
		d.pageRead(page, began, ended)
		moved := page.Continuation != "" && page.Continuation != position.Continuation
		if moved {
			position.Continuation, position.Since = page.Continuation, time.Time{}
		}
		caughtUp, items := page.CaughtUp || upToEnd(page), len(page.Items)
		if items > 0 || moved {
			f.admit(page) // the flow owns the page from here on
		} else {
			release(page)
		}
		if items > 0 {
			poll.changed(ended, items)
		}
		if caughtUp {
			f.passPast()
		}
		if caughtUp && !f.window.busy() {
			f.report(nil) // a failure of an earlier session cannot repeat: nothing is left to deliver
		}
		if moved && !caughtUp {
			continue
		}
		_ = sleep(ctx, d.clock, poll.pause(ended), d.wakeup)
		f.waitLane(ctx, d.opts.PollMax)
	}
	return nil
}

// pageRead records a reply for the lag and notifies the observer.
func (d *delivery) pageRead(p *Page, began, ended time.Time) {
	d.state.Lock()
	d.lag.read(p)
	d.state.Unlock()
	d.noteSuccess(ofReads)
	if p.Doubt != nil {
		notify(d.obs.LeaseError, LeaseError{Lease: d.Lease, Op: OpCheckFeed, Err: p.Doubt})
	}
	notify(d.obs.PageRead, PageRead{
		LeaseRef: d.LeaseRef, Items: len(p.Items), Bytes: p.Bytes, CaughtUp: p.CaughtUp, RequestCharge: p.RequestCharge, Took: ended.Sub(began),
	})
}

// readFailed records an error for the lag. A permanent one makes the range unhealthy.
func (d *delivery) readFailed(err error) {
	d.state.Lock()
	d.lag.err = err
	d.state.Unlock()
	if errors.Is(err, ErrPermanent) {
		d.noteFailure(ofReads, err)
	}
}

// upToEnd reports whether the page ends with the last change the service had. Then the next
// poll can wait, because a read at once would only confirm that nothing follows.
func upToEnd(p *Page) bool {
	n := len(p.Items)
	return n > 0 && p.EndLSN > 0 && p.Items[n-1].LSN >= p.EndLSN
}

// poller computes the pause between reads of a range with nothing new. It is short while
// changes keep coming and grows with the time since the last one. If changes come faster
// than PollMin it is the time between two of them, so that reads cost no more than the
// writes that cause them.
type poller struct {
	*Options
	last     time.Time     // the last change, or the start
	gap      time.Duration // recent average between two changes
	pauseNow time.Duration
}

// changed records a page with items. A large page counts as a few changes, because a burst
// says little about the time of the next change.
func (p *poller) changed(now time.Time, items int) {
	const most, weight = 8, 8
	per := min(now.Sub(p.last), p.PollMin) / time.Duration(min(items, most))
	p.gap += (per - p.gap) / weight
	p.last, p.pauseNow = now, p.PollMin
}

func (p *poller) pause(now time.Time) time.Duration {
	silence := now.Sub(p.last)
	switch {
	case silence >= time.Minute:
		p.pauseNow = min(p.pauseNow+p.pauseNow/2, p.PollMax)
	case silence < p.PollMin:
		return jitter(min(max(p.gap, p.PollBusy), p.PollMin))
	default: // after a silence, a change may wait for a hundredth of it
		p.pauseNow = min(max(p.PollMin, silence/100), p.PollMax)
	}
	return jitter(p.pauseNow)
}
