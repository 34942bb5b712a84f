package changefeed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Lag measures every live range with at least one read of the feed each, including unowned
// ranges.
func (o *Operator) Lag(ctx context.Context) ([]RangeLag, error) {
	leases, err := o.live(ctx)
	if err != nil {
		return nil, err
	}
	lags := make([]RangeLag, 0, len(leases))
	for _, l := range leases {
		lag := RangeLag{Lease: l}
		err := o.measureLease(ctx, &lag)
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

// measureLease measures a lease from its checkpoint.
func (o *Operator) measureLease(ctx context.Context, lag *RangeLag) error {
	l := lag.Lease
	if l.Lost > 0 {
		return &AheadError{Position: max(l.Reached, l.LSN, l.Delivered), End: l.Lost, Lost: true}
	}
	err := o.measure(ctx, l.position(), lag)
	if _, ahead := errors.AsType[*AheadError](err); ahead { // once, it may be a delayed replica
		*lag = RangeLag{Lease: l}
		err = o.measure(ctx, l.position(), lag)
	}
	return err
}

// measure adds the changes after a position to lag. One item is enough, because EndLSN gives
// the number of changes. A range that split is measured by its parts.
func (o *Operator) measure(ctx context.Context, at RangeToken, lag *RangeLag) error {
	page, err := o.feed.Read(ctx, ReadRequest{Range: at.Range, Continuation: at.Continuation, Since: at.Since, MaxItems: 1})
	if split, ok := errors.AsType[*SplitError](err); ok && len(split.Children) > 1 {
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
	if ahead := page.behind(max(lag.Reached, lag.LSN, lag.Delivered)); ahead != nil {
		return ahead
	}
	if len(page.Items) == 0 {
		if !page.CaughtUp && page.Continuation != "" && page.Continuation != at.Continuation {
			// The page had only documents of other ranges: measure from its end.
			return o.measure(ctx, RangeToken{Range: at.Range, Continuation: page.Continuation}, lag)
		}
		return nil
	}
	first := &page.Items[0]
	lag.Age = max(lag.Age, o.opts.Now().Sub(first.Time()))
	lag.Transactions += transactions(o.feed, max(1, page.EndLSN-(first.LSN-1)))
	return nil
}

// Host is a host with a record of its own: one that owns no lease yet, a spare one, or one
// that is about to leave. A host that owns leases and stays has no such record, because its
// leases name it.
type Host struct {
	Name, Incarnation string
	Draining          bool // it is about to release its leases
	Spare             bool // it is due no lease
	Timestamp         time.Time
	Expiry            time.Duration
}

// Hosts lists the host records by name. Records of killed hosts remain for some time.
func (o *Operator) Hosts(ctx context.Context) ([]Host, error) {
	ids, err := o.ids(ctx)
	if err != nil {
		return nil, err
	}
	records, err := o.store.List(ctx, ids.prefix+hostInfix)
	if err != nil {
		return nil, fmt.Errorf("list hosts: %w", err)
	}
	var hosts []Host
	for _, r := range records {
		var h heartbeat
		if err := json.Unmarshal(r.Body, &h); err != nil {
			continue // of another version, which this one does not understand
		}
		at, _ := time.Parse(timestampFormat, h.Timestamp) // zero if invalid
		hosts = append(hosts, Host{
			Name: h.Host, Incarnation: h.Incarnation, Draining: h.Draining, Spare: h.Spare,
			Timestamp: at, Expiry: time.Duration(h.ExpiryMS) * time.Millisecond,
		})
	}
	slices.SortFunc(hosts, func(a, b Host) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Incarnation, b.Incarnation))
	})
	return hosts, nil
}
