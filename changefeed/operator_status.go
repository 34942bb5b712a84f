package changefeed

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Lag measures every live range with at least one read of the feed each, some at a time, including unowned
// ranges.
func (o *Operator) Lag(ctx context.Context) ([]RangeLag, error) {
	leases, err := o.live(ctx)
	if err != nil {
		return nil, err
	}
	lags := make([]RangeLag, len(leases))
	err = inParallel(len(leases), func(i int) error {
		lags[i].Lease = leases[i]
		if err := lags[i].measure(ctx, o.feed, o.opts.Now); err != nil && lags[i].Error == "" {
			lags[i].Error = err.Error()
		}
		return context.Cause(ctx)
	})
	if err != nil {
		return nil, err
	}
	paused, err := o.Paused(ctx)
	for i := range lags {
		lags[i].Paused = paused || lags[i].Request.Paused
	}
	return lags, err
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
