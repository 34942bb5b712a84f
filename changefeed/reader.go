package changefeed

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// read reads pages ahead of the lanes, from the checkpoint on, until ctx ends (nil) or the
// range turns out to have split. It retries every other error in place; the lease is kept
// unless the feed does not reply for long (silence.go).
func (d *delivery) read(ctx context.Context, f *flow) *SplitError {
	defer d.readAnswered()
	lease := d.keeper.snapshot()
	position, reached := lease.position(), max(lease.Reached, lease.LSN, lease.Delivered)
	d.resumed = !lease.Backlog
	var early earlyEnd
	var backlog uint64 // its last page, once the range was read to its end
	retry := backoff{min: d.opts.RetryMin, max: d.opts.RetryMax}
	poll := newPoller(d.env, &lease)
	for f.window.waitRoom(ctx) {
		began := d.clock.Now()
		d.readDue(began)
		page, err := d.readPage(ctx, position, reached, &early)
		ended := d.clock.Now()
		var split *SplitError
		var ahead *AheadError
		switch {
		case ctx.Err() != nil:
			release(page)
			return nil
		case errors.As(err, &split):
			return split
		case errors.As(err, &ahead) && early.first(): // once, it may be a delayed replica
			release(page)
			_ = sleep(ctx, d.clock, retry.next(nil), nil)
			continue
		case err != nil:
			release(page)
			early.failed = early.failed || ahead == nil
			pause := retry.next(err)
			d.readFailed(err)
			notify(d.obs.ReadFailed, ReadFailed{LeaseRef: d.LeaseRef, Err: err, Pause: pause})
			_ = sleep(ctx, d.clock, pause, nil) // waitRoom checks ctx
			continue
		}
		retry.reset()
		early = earlyEnd{}
		reached = d.reach(page, reached)
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
			if !d.resumed {
				d.resumed, backlog = true, f.window.last()
			}
		}
		if lease.Backlog && d.resumed && f.window.passed(backlog) {
			lease.Backlog = false
			d.keeper.change(func(l *Lease) urgency { l.Backlog = false; return later })
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

// lostAfter is how long a feed that failed over must end before the position until its changes
// count as lost, because the replicas of the new region may be delayed for a moment.
const lostAfter = 5 * time.Second

// earlyEnd measures for how long the feed has ended before the position. Nothing is known of the time in which
// reads fail: the replica that replies after it may be another one, so that time counts as a second.
type earlyEnd struct {
	since, last time.Time // the first and the last reply, moved by what does not count
	failed      bool      // a read has failed since the last one
}

// reply records that the feed ended early and returns for how long it has.
func (e *earlyEnd) reply(at time.Time) time.Duration {
	switch {
	case e.since.IsZero():
		e.since = at
	case e.failed:
		e.since = e.since.Add(max(0, at.Sub(e.last)-time.Second))
	}
	e.last, e.failed = at, false
	return at.Sub(e.since)
}

func (e *earlyEnd) first() bool { return e.since.Equal(e.last) }

// readPage reads the page after a position. A feed that ends before the highest LSN that was read
// is an *AheadError: the range is due to be read until that is over. If it has failed over and ends
// early for lostAfter, the lease records the loss, and nothing is read any more. If the
// server of feed and leases has failed over, the ownership ends, because the new one may have lost
// the position.
func (d *delivery) readPage(ctx context.Context, from RangeToken, reached int64, early *earlyEnd) (*Page, error) {
	lease := d.keeper.snapshot()
	if lease.Lost != 0 {
		early.reply(d.clock.Now())
		return nil, lease.ahead(reached)
	}
	page, err := d.feed.Read(ctx, ReadRequest{
		Range: d.Range, Container: d.container, Continuation: from.Continuation, Since: from.Since, MaxItems: max(0, d.opts.MaxItems),
	})
	ahead, exact := errors.AsType[*AheadError](err) // exact: the feed compares itself
	if err != nil && !exact {
		return page, err
	}
	term := ahead.term(page)
	failedOver := termChanged(lease.Term, term)
	switch {
	case lease.foreignTo(term):
		ahead = &AheadError{Position: reached, Lost: true, Foreign: true}
	case termChanged(lease.loaded, term):
		d.keeper.end(fmt.Errorf("%w: %w", ErrLeaseLost, errReload))
		return page, errReload
	case !exact:
		ahead = page.behind(reached)
	}
	if ahead != nil {
		lasted := early.reply(d.clock.Now())
		ahead.Lost = ahead.Lost || !exact && failedOver && lasted >= lostAfter
		if ahead.Lost {
			d.keeper.change(func(l *Lease) urgency { l.lose(ahead); return now })
		}
		return page, ahead
	}
	d.readAnswered()
	if failedOver {
		notify(d.obs.LeaseError, LeaseError{Lease: d.Lease, Op: OpCheckHistory, Err: lease.failedOver(term)})
	}
	if page.Term != "" && page.Term != lease.Term {
		d.keeper.change(func(l *Lease) urgency { l.Term = page.Term; return later })
	}
	return page, nil
}

// pageRead records a reply for the lag and notifies the observer.
func (d *delivery) pageRead(p *Page, began, ended time.Time) {
	d.state.Lock()
	d.lag.read(p)
	d.lag.at = d.opts.Now()
	d.state.Unlock()
	d.keeper.change(func(l *Lease) urgency { l.LastRead = d.opts.Now(); return later })
	d.noteSuccess(ofReads)
	if p.Doubt != nil {
		notify(d.obs.LeaseError, LeaseError{Lease: d.Lease, Op: OpCheckFeed, Err: p.Doubt})
	}
	notify(d.obs.PageRead, PageRead{
		LeaseRef: d.LeaseRef, Items: len(p.Items), Bytes: p.Bytes, CaughtUp: p.CaughtUp, RequestCharge: p.RequestCharge, Took: ended.Sub(began),
	})
}

// readFailed records an error for the lag. One that does not pass by itself makes the range
// unhealthy. If the container was created again, the cycle must notice.
func (d *delivery) readFailed(err error) {
	d.state.Lock()
	d.lag.err = err
	d.state.Unlock()
	if errors.Is(err, ErrRecreated) {
		d.relist.send()
	}
	if lasts(err) {
		d.noteFailure(ofReads, err)
	}
}

// lasts reports whether an error of a read lasts until an operator acts.
func lasts(err error) bool {
	_, ahead := errors.AsType[*AheadError](err)
	return ahead || errors.Is(err, ErrPermanent)
}

// reach returns the highest LSN that was read after a page. If the page ends the feed, the
// lease keeps it with its next write: the position is then after changes without documents,
// too, such as deletes.
func (d *delivery) reach(p *Page, reached int64) int64 {
	last, _ := p.last()
	if p.CaughtUp {
		last = max(last, p.EndLSN)
	}
	if last <= reached {
		return reached
	}
	d.keeper.change(func(l *Lease) urgency { l.Reached = last; return later })
	return last
}

// upToEnd reports whether the page ends with the last change the service had. Then the next
// poll can wait, because a read at once would only confirm that nothing follows.
func upToEnd(p *Page) bool {
	n := len(p.Items)
	return n > 0 && !p.Cut && p.EndLSN > 0 && p.Items[n-1].LSN >= p.EndLSN
}

// poller computes the pause between reads of a range with nothing new. It is short while
// changes keep coming and grows with the time since the last one. If changes come faster
// than PollMin it is the time between two of them, so that reads cost no more than the
// writes that cause them.
type poller struct {
	*Options
	turns    *turns
	turn     time.Time     // of the range
	last     time.Time     // the last change, or the start
	patience time.Duration // a change may wait for the silence before it divided by this
	gap      time.Duration // recent average between two changes
	pauseNow time.Duration
}

// newPoller continues where the former owner was: otherwise leases that hosts lose because they are overloaded would
// each begin with many reads, and the hosts would stay overloaded. Nothing is known of a range that no change was
// read from, so it has fewer.
func newPoller(e *env, lease *Lease) poller {
	p := poller{Options: &e.opts, turns: e.turns, last: e.clock.Now(), patience: 10, gap: e.opts.PollMin, pauseNow: e.opts.PollMin}
	if lease.ChangeTime != 0 {
		p.last, p.patience = p.last.Add(-max(0, e.opts.Now().Sub(time.Unix(lease.ChangeTime, 0)))), 100
	}
	return p
}

// changed records a page with items. A large page counts as a few changes, because a burst
// says little about the time of the next change.
func (p *poller) changed(now time.Time, items int) {
	const most, weight = 8, 8
	per := min(now.Sub(p.last), p.PollMin) / time.Duration(min(items, most))
	p.gap += (per - p.gap) / weight
	p.last, p.patience, p.pauseNow = now, 100, p.PollMin
}

func (p *poller) pause(now time.Time) time.Duration {
	silence := now.Sub(p.last)
	switch {
	case silence >= time.Minute:
		p.pauseNow = min(p.pauseNow+p.pauseNow/2, p.PollMax)
	case silence < p.PollMin: // these reads are about as many as the changes
		return jitter(min(max(p.gap, p.PollBusy), p.PollMin))
	default:
		p.pauseNow = min(max(p.PollMin, silence/p.patience), p.PollMax)
	}
	return p.turns.wait(now, jitter(p.pauseNow), p.Options, &p.turn)
}
