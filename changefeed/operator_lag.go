package changefeed

import (
	"context"
	"errors"
)

// Lag measures every live range with at least one read of the feed each, also of
// ranges nobody owns.
func (o *Operator) Lag(ctx context.Context) ([]RangeLag, error) {
	leases, err := o.live(ctx, nil)
	if err != nil {
		return nil, err
	}
	lags := make([]RangeLag, 0, len(leases))
	for _, l := range leases {
		lag := l.lag()
		err := o.measure(ctx, l.position(), &lag)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil && lag.Error == "":
			lag.Error = err.Error()
		}
		lag.Known = err == nil
		lags = append(lags, lag)
	}
	return lags, nil
}

// measure adds what waits behind a position. A range that split is measured by
// its parts.
func (o *Operator) measure(ctx context.Context, at RangeToken, lag *RangeLag) error {
	page, err := o.feed.Read(ctx, ReadRequest{Range: at.Range, Continuation: at.Continuation, Since: at.Since, MaxItems: 1})
	var split *SplitError
	if errors.As(err, &split) && len(split.Children) > 1 {
		for _, child := range split.Children {
			if err := o.measure(ctx, RangeToken{Range: child, Continuation: at.Continuation, Since: at.Since}, lag); err != nil {
				return err
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer release(page)
	if len(page.Items) == 0 {
		if !page.CaughtUp && page.Continuation != "" && page.Continuation != at.Continuation {
			// A page of other ranges' documents only: look behind it.
			return o.measure(ctx, RangeToken{Range: at.Range, Continuation: page.Continuation}, lag)
		}
		return nil
	}
	first := &page.Items[0]
	lag.Age = max(lag.Age, o.opts.Now().Sub(first.Time()))
	lag.Transactions += max(1, page.EndLSN-(first.LSN-1))
	return nil
}
