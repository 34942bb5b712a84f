package changefeed

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Operator looks at a processor's leases and asks their owners for things. It
// takes no lease itself: what it writes is a request, or a pause, that the hosts
// carry out at their next look, and never loses what they write meanwhile. It is
// safe for concurrent use.
type Operator struct {
	feed  Feed
	store LeaseStore
	opts  OperatorOptions
}

// OperatorOptions say which processor is meant; see Options.
type OperatorOptions struct {
	Processor       string // default "changefeed"
	LeasePrefixHost string // default: the feed's
}

// NewOperator returns an operator; nil options are the defaults. It does no I/O.
func NewOperator(feed Feed, leases LeaseStore, options *OperatorOptions) *Operator {
	o := &Operator{feed: feed, store: leases}
	if options != nil {
		o.opts = *options
	}
	if o.opts.Processor == "" {
		o.opts.Processor = "changefeed"
	}
	return o
}

func (o *Operator) ids(ctx context.Context) (recordIDs, error) {
	source, err := o.feed.Source(ctx)
	if err != nil {
		return recordIDs{}, fmt.Errorf("identify the container: %w", err)
	}
	if o.opts.LeasePrefixHost != "" {
		source.Host = o.opts.LeasePrefixHost
	}
	return newRecordIDs(o.opts.Processor, source), nil
}

// Leases lists all lease records in order of their ranges. A lease this package
// cannot continue makes it return *RefusedError beside the others.
func (o *Operator) Leases(ctx context.Context) ([]Lease, error) {
	ids, err := o.ids(ctx)
	if err != nil {
		return nil, err
	}
	records, err := o.store.List(ctx, ids.prefix+leaseInfix)
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	var leases []Lease
	var refused RefusedError
	for _, r := range records {
		l, err := decodeLease(r)
		if err != nil {
			refused.Leases = append(refused.Leases, RefusedLease{ID: r.ID, Reason: err.Error()})
			continue
		}
		leases = append(leases, l)
	}
	slices.SortFunc(leases, func(a, b Lease) int {
		if c := compareKeys(a.Range.Min, b.Range.Min); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	if len(refused.Leases) > 0 {
		return leases, &refused
	}
	return leases, nil
}
