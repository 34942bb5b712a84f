package operator

import (
	"context"
	"math"
	"slices"
	"time"

	"feedbox/changefeed"
)

// PlanRestart reads everything the feed still has of the leases, by id, or of all. A range that
// cannot be read has its reason in Left, and its events are unknown. It calls progress with the
// number of documents read.
func (o *Operator) PlanRestart(ctx context.Context, window time.Duration, progress func(documents int), ids ...string) ([]Resend, error) {
	leases, err := o.Leases.Leases(ctx)
	if err != nil {
		return nil, err
	}
	var plan []Resend
	for _, l := range leases {
		if l.State != changefeed.LeaseLive || len(ids) > 0 && !slices.Contains(ids, l.ID) {
			continue
		}
		r := Resend{Lease: l.Token, Owner: l.Owner}
		c := counter{o: o, until: math.MaxInt64, now: time.Now(), window: window, into: &r, progress: progress}
		if err := c.read(ctx, changefeed.RangeToken{Range: l.Range}); err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			r.Left = "its events cannot be counted: " + OneLine(err)
		}
		plan = append(plan, r)
	}
	return plan, nil
}
