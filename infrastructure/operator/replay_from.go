package operator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"feedbox/changefeed"
	"feedbox/domain/fault"
	"feedbox/infrastructure/process/config"
)

// Resend summarises the events that a replay sends again, of one feed range or one key.
type Resend struct {
	Lease  string // token of the feed range, "" for a key
	Owner  string
	Events int
	// Oldest and Newest are the commit times of these events.
	Oldest, Newest time.Time
	// Covered counts the events committed less than a duplicate window ago: the broker drops
	// them if they were sent before. It may have forgotten the others.
	Covered int
	// Refused counts events that cannot be sent; a relay parks them again.
	Refused int
	// Left is the reason for which the range is not rewound; "" if it is.
	Left string
}

func (r *Resend) add(at, now time.Time, window time.Duration) {
	r.Events++
	if r.Oldest.IsZero() || at.Before(r.Oldest) {
		r.Oldest = at
	}
	if at.After(r.Newest) {
		r.Newest = at
	}
	if now.Sub(at) < window {
		r.Covered++
	}
}

// replayPage is the page size, in documents.
const replayPage = 1000

// RequireAnyStart returns an error if the feed of the relay can be read from its own positions only, and not
// from the beginning or a time. A lease that was moved there would stop its range.
func (o *Operator) RequireAnyStart() error {
	if o.cfg.Feed != config.FeedVersions {
		return nil
	}
	return fault.New(fault.Conflict, "no_beginning", "the feed of all versions has no beginning and no times: replay a key from the store, or move the leases with rewind --to now, which skips unsent events")
}

// PlanReplay reads the documents between from and the checkpoint of each lease. It omits a
// lease that changefeed.Lease.NotReplayed has a reason for, because moving it there could skip unsent events,
// and one that is not live, because no owner reads its requests. Both are in the plan with their reasons, as are
// the parts of the key space without a lease.
// It calls progress with the number of documents read.
func (o *Operator) PlanReplay(ctx context.Context, from time.Time, window time.Duration, progress func(documents int)) ([]Resend, error) {
	if err := o.RequireAnyStart(); err != nil {
		return nil, err
	}
	leases, err := o.Leases.Leases(ctx)
	if err != nil {
		return nil, err
	}
	var plan []Resend
	for _, l := range leases {
		if isPart(l, leases) {
			continue
		}
		r := Resend{Lease: l.Token, Owner: l.Owner}
		r.Left = l.NotReplayed(from)
		switch {
		case l.State == changefeed.LeaseSplit:
			r.Left = "is being split; repeat this when its parts have owners"
		case l.State != changefeed.LeaseLive:
			r.Left = notLive
		case r.Left == "":
			c := counter{o: o, until: l.LSN, now: time.Now(), window: window, into: &r, progress: progress}
			if err := c.read(ctx, changefeed.RangeToken{Range: l.Range, Since: from}); err != nil {
				return nil, err
			}
		}
		plan = append(plan, r)
	}
	return append(plan, withoutLease(leases)...), nil
}

// notLive is the reason for a lease that a first start did not complete.
const notLive = "is not live yet; repeat this when it has an owner"

// withoutLease returns the parts of the key space that no request reaches.
func withoutLease(leases []changefeed.Lease) (left []Resend) {
	for _, gap := range Uncovered(leases) {
		left = append(left, Resend{Lease: gap, Left: gap + " has no lease; repeat this when a relay has created one"})
	}
	return left
}

// counter counts the events of one lease up to its checkpoint.
type counter struct {
	o        *Operator
	until    int64 // LSN of the checkpoint
	now      time.Time
	window   time.Duration
	into     *Resend
	progress func(documents int)
}

func (c *counter) read(ctx context.Context, at changefeed.RangeToken) error {
	for {
		page, err := c.o.store.Feed.Read(ctx, changefeed.ReadRequest{Range: at.Range, Continuation: at.Continuation, Since: at.Since, MaxItems: replayPage})
		if split, ok := errors.AsType[*changefeed.SplitError](err); ok && len(split.Children) > 1 {
			for _, child := range split.Children {
				if err := c.read(ctx, changefeed.RangeToken{Range: child, Continuation: at.Continuation, Since: at.Since}); err != nil {
					return err
				}
			}
			return nil
		}
		if err != nil {
			return err
		}
		more := c.page(page)
		if page.Release != nil {
			page.Release()
		}
		if !more || page.CaughtUp || page.Continuation == at.Continuation {
			return nil
		}
		at.Continuation, at.Since = page.Continuation, time.Time{}
	}
}

// page counts the events of a page and reports whether the checkpoint is after it.
func (c *counter) page(page *changefeed.Page) bool {
	c.progress(len(page.Items))
	for i := range page.Items {
		item := &page.Items[i]
		if item.LSN > c.until {
			return false
		}
		switch _, isEvent, err := c.o.store.Decoder.Decode(item.Raw); {
		case err != nil:
			c.into.Refused++
		case isEvent:
			c.into.add(item.Time(), c.now, c.window)
		}
	}
	return true
}

// Rewind asks the owners of the leases to read again from a time. It moves none ahead, even if a lease has
// changed since its plan was made.
func (o *Operator) Rewind(ctx context.Context, from time.Time, leases ...string) error {
	if len(leases) == 0 {
		return errors.New("rewind: name at least one lease") // Operator.Replay treats none as all
	}
	if err := o.Leases.Replay(ctx, from, leases...); err != nil {
		return fmt.Errorf("rewind: %w", err)
	}
	return nil
}

// PlanRestart reads everything the feed still has of the leases, by id, or of all. A range that
// cannot be read has its reason in Left, and its events are unknown. It calls progress with the
// number of documents read.
func (o *Operator) PlanRestart(ctx context.Context, window time.Duration, progress func(documents int), ids ...string) ([]Resend, error) {
	if err := o.RequireAnyStart(); err != nil {
		return nil, err
	}
	leases, err := o.Leases.Leases(ctx)
	if err != nil {
		return nil, err
	}
	var plan []Resend
	for _, l := range leases {
		if isPart(l, leases) || len(ids) > 0 && !slices.Contains(ids, l.ID) {
			continue
		}
		r := Resend{Lease: l.Token, Owner: l.Owner}
		c := counter{o: o, until: math.MaxInt64, now: time.Now(), window: window, into: &r, progress: progress}
		if err := c.read(ctx, changefeed.RangeToken{Range: l.Range}); err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			r.Left = "its events cannot be counted: " + OneLine(err)
		} else if l.State == changefeed.LeasePending {
			r.Left = notLive
		}
		plan = append(plan, r)
	}
	if len(ids) == 0 {
		plan = append(plan, withoutLease(leases)...)
	}
	return plan, nil
}
