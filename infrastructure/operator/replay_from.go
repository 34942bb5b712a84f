package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"feedbox/changefeed"
)

// Resend is what a replay would send again, of one feed range or of one key.
type Resend struct {
	Lease  string // token of the feed range, "" for a key
	Owner  string
	Events int
	// Oldest and Newest are the commit times of these events.
	Oldest, Newest time.Time
	// Covered counts the events committed less than a duplicate window ago. The broker
	// drops them if they were sent before. Of the others it may not know any more.
	Covered int
	// Refused counts events that cannot be sent as they are; a relay parks them again.
	Refused int
	// Left says why the range is not rewound; "" = it is.
	Left string
}

// add counts an event committed at a time.
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

// replayPage is how many documents are asked for at a time.
const replayPage = 1000

// PlanReplay reads what lies between from and the checkpoint of each lease. A lease
// that has not come to from yet is left: to move it there would skip what it has not
// sent. progress is told of the documents read.
func (o *Operator) PlanReplay(ctx context.Context, from time.Time, window time.Duration, progress func(documents int)) ([]Resend, error) {
	leases, err := o.Leases.Leases(ctx)
	if err != nil {
		return nil, err
	}
	var plan []Resend
	for _, l := range leases {
		if l.State != changefeed.LeaseLive {
			continue
		}
		r := Resend{Lease: l.Token, Owner: l.Owner}
		changed := time.Unix(l.ChangeTime, 0)
		switch {
		case l.ChangeTime == 0:
			r.Left = "nothing was handled yet"
		case !changed.After(from): // what is not sent yet may be as old
			r.Left = "has not come to that time"
		default:
			c := counter{o: o, until: l.LSN, now: time.Now(), window: window, into: &r, progress: progress}
			if err := c.read(ctx, changefeed.RangeToken{Range: l.Range, Since: from}); err != nil {
				return nil, err
			}
		}
		plan = append(plan, r)
	}
	return plan, nil
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

// page counts the events of a page and reports whether the checkpoint lies behind it.
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

// Rewind makes the owners of the leases read again from a time.
func (o *Operator) Rewind(ctx context.Context, from time.Time, leases ...string) error {
	if len(leases) == 0 {
		return errors.New("no lease is to be rewound") // none would mean all
	}
	if err := o.Leases.Rewind(ctx, changefeed.FromTime(from), leases...); err != nil {
		return fmt.Errorf("rewind: %w", err)
	}
	return nil
}
