package changefeed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// A range that nobody reads looks like one without changes. Therefore each read of the feed
// that is due and not answered is watched, and so is each part of the scope without an owner:
//
//	read is due ── reply ──▶ not due until the next read
//	     │
//	     └─ no reply for unreadAfter ─▶ RangeUnread, health Retrying, lag unknown
//	                                    └─ next cycle ─▶ release, to another host if there is one
//
// A range whose reads fail is reported, too, but keeps its owner: the error is a reply, and
// another host would get the same.

// unreadAfter is how long a range is due to be read without a reply before it is reported.
// Half a timeout longer than one read, so that a single lost request is no report.
func (o *Options) unreadAfter() time.Duration { return o.ReadTimeout * 3 / 2 }

// errSilent is the cause if reads of the feed neither succeed nor fail.
var errSilent = errors.New("the feed does not reply")

// withDeadline makes a request that ends after limit.
func withDeadline[T any](ctx context.Context, limit time.Duration, request func(ctx context.Context) (T, error)) (T, error) {
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	result, err := request(timed)
	if err != nil && timed.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no reply within %s: %w", limit, err)
	}
	return result, err
}

// timedFeed is a feed whose requests have a deadline.
type timedFeed struct {
	Feed
	limit time.Duration
}

func (f timedFeed) Source(ctx context.Context) (Source, error) {
	return withDeadline(ctx, f.limit, f.Feed.Source)
}

func (f timedFeed) Ranges(ctx context.Context) ([]FeedRange, error) {
	return withDeadline(ctx, f.limit, f.Feed.Ranges)
}

func (f timedFeed) Now(ctx context.Context, r FeedRange) (string, error) {
	return withDeadline(ctx, f.limit, func(ctx context.Context) (string, error) { return f.Feed.Now(ctx, r) })
}

func (f timedFeed) Read(ctx context.Context, req ReadRequest) (*Page, error) {
	return withDeadline(ctx, f.limit, func(ctx context.Context) (*Page, error) { return f.Feed.Read(ctx, req) })
}

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
	if e.Silent {
		d.noteFailure(ofReads, err)
	}
	notify(d.obs.RangeUnread, e)
	d.relist.send()
}

// givesUp reports whether another host should try to read the range. If no host can, the lease
// moves ever more rarely: an owner keeps it for as long as all owners before it together.
func (d *delivery) givesUp(now time.Time) bool {
	d.state.Lock()
	defer d.state.Unlock()
	silent := d.unreadLocked(now)
	return silent > 0 && (d.lag.err == nil || noReply(d.lag.err)) && 2*silent >= now.Sub(d.trouble.since)
}

// noReply reports whether an error of a read means that the feed did not reply.
func noReply(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, errSilent) || errors.As(err, &timeout) && timeout.Timeout()
}

// releaseUnread releases the leases of ranges that this host cannot read.
func (r *run) releaseUnread(seen listing, view balanceView, now time.Time) {
	for _, w := range r.workers.all() {
		if w.givesUp(now) {
			w.stop(stopOrder{handoff: r.otherHost(seen, view, now), reason: "the feed does not reply"})
		}
	}
}

// otherHost returns the host to try next: a spare one, else the one with the fewest leases.
// The balancer alone would often choose this host again, which then is below its share.
func (r *run) otherHost(seen listing, view balanceView, now time.Time) (other hostKey) {
	for _, h := range seen.hosts {
		alive := r.lister.etags.unchangedFor(r.ids.host(h.Host, h.Incarnation), now) < spareExpiries*r.opts.Expiry
		if h.Spare && alive && h.key() != r.self {
			return h.key()
		}
	}
	has, _ := view.dues()
	for _, h := range view.hosts {
		if h != r.self && (other == "" || has[h] < has[other]) {
			other = h
		}
	}
	return other
}

// vacancies reports the parts of the scope that no host owns.
type vacancies struct {
	*env
	since map[LeaseRef]time.Time // when it was first seen without an owner, or last reported
}

func (v *vacancies) observe(seen listing, t tiling, view balanceView, now time.Time) {
	still := map[LeaseRef]time.Time{}
	vacant := func(ref LeaseRef, why error) {
		since, before := v.since[ref]
		if !before {
			since = now
		}
		if silent := now.Sub(since); silent >= v.opts.unreadAfter() {
			notify(v.obs.RangeUnread, RangeUnread{LeaseRef: ref, For: silent, Err: why})
			since = now
		}
		still[ref] = since
	}
	for _, gap := range t.gaps {
		vacant(LeaseRef{Range: gap}, errors.New("no lease covers the range"))
	}
	owned := map[string]bool{}
	for _, l := range view.leases {
		owned[l.id] = l.owner != ""
	}
	for _, l := range seen.leases {
		_, replayed := t.replaced[l.ID]
		switch {
		case replayed:
		case l.State == LeaseSplit:
			vacant(l.ref(), errors.New("the split of the lease is not completed"))
		case l.State == LeaseLive && !owned[l.ID]:
			vacant(l.ref(), errors.New("no host owns the lease"))
		}
	}
	v.since = still
}
