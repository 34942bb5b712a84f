package changefeed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Operator inspects a processor's leases and sends requests to their owners. It owns no
// lease. It writes requests, which the owner carries out between two pages, or the next
// owner when it acquires the lease. Concurrent writes of the owner are not lost. It is safe
// for concurrent use.
type Operator struct {
	feed  Feed
	store LeaseStore
	opts  OperatorOptions
}

// OperatorOptions select the processor; see Options.
type OperatorOptions struct {
	Processor       string           // default "changefeed"
	LeasePrefixHost string           // default: the feed's
	Now             func() time.Time // wall clock of lag; default time.Now
}

// NewOperator returns an operator; nil options are the defaults. It does no I/O.
func NewOperator(feed Feed, leases LeaseStore, options *OperatorOptions) *Operator {
	o := &Operator{feed: feed, store: leases}
	if options != nil {
		o.opts = *options
	}
	o.opts.Processor = cmp.Or(o.opts.Processor, "changefeed")
	if o.opts.Now == nil {
		o.opts.Now = time.Now
	}
	return o
}

// Leases lists the live leases, and those of incomplete splits, in order of their ranges.
// If there are leases this package cannot continue, it returns *RefusedError beside the
// others.
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
		switch l, err := decodeLease(r); {
		case err != nil:
			refused.Leases = append(refused.Leases, RefusedLease{ID: r.ID, Reason: err.Error()})
		case l.State != LeaseDone:
			leases = append(leases, l)
		}
	}
	slices.SortFunc(leases, func(a, b Lease) int {
		return cmp.Or(compareKeys(a.Range.Min, b.Range.Min), cmp.Compare(a.ID, b.ID))
	})
	if len(refused.Leases) > 0 {
		return leases, &refused
	}
	return leases, nil
}

// Export returns the checkpoints of all ranges, for FromTokens.
func (o *Operator) Export(ctx context.Context) ([]RangeToken, error) {
	leases, err := o.live(ctx, nil)
	if err != nil {
		return nil, err
	}
	tokens := make([]RangeToken, len(leases))
	for i, l := range leases {
		tokens[i] = l.position()
	}
	return tokens, nil
}

// Pause makes all hosts hold their leases without delivering, until Resume. They notice
// within Options.Acquire. Pausing twice is no error.
func (o *Operator) Pause(ctx context.Context) error {
	ids, err := o.ids(ctx)
	if err != nil {
		return err
	}
	body := mustMarshal(map[string]string{"id": ids.pause(), "timestamp": o.opts.Now().UTC().Format(timestampFormat)})
	if _, err := o.store.Create(ctx, Record{ID: ids.pause(), Body: body}); err != nil && !errors.Is(err, ErrExists) {
		return fmt.Errorf("pause: %w", err)
	}
	return nil
}

// Resume ends Pause. Without a pause it does nothing.
func (o *Operator) Resume(ctx context.Context) error {
	ids, err := o.ids(ctx)
	if err != nil {
		return err
	}
	for {
		record, err := o.store.Read(ctx, ids.pause())
		if err == nil {
			err = o.store.Delete(ctx, record.ID, record.ETag)
		}
		switch {
		case err == nil, errors.Is(err, ErrNotFound):
			return nil
		case !errors.Is(err, ErrETagMismatch):
			return fmt.Errorf("resume: %w", err)
		}
	}
}

// Paused reports whether all hosts are asked to pause.
func (o *Operator) Paused(ctx context.Context) (bool, error) {
	ids, err := o.ids(ctx)
	if err != nil {
		return false, err
	}
	_, err = o.store.Read(ctx, ids.pause())
	if err != nil && !errors.Is(err, ErrNotFound) {
		return false, fmt.Errorf("read pause: %w", err)
	}
	return err == nil, nil
}

// PauseLeases pauses single leases, by id. Without ids it pauses all current leases.
func (o *Operator) PauseLeases(ctx context.Context, leases ...string) error {
	return o.each(ctx, leases, func(l *Lease) error { l.Request.Paused = true; return nil })
}

// ResumeLeases ends PauseLeases.
func (o *Operator) ResumeLeases(ctx context.Context, leases ...string) error {
	return o.each(ctx, leases, func(l *Lease) error { l.Request.Paused = false; return nil })
}

// Release makes the owners release leases once, by id. Without ids it releases all.
// Balancing decides the next owner, which may be the same host.
func (o *Operator) Release(ctx context.Context, leases ...string) error {
	return o.each(ctx, leases, func(l *Lease) error { l.Request.Release = l.Owner != ""; return nil })
}

// Retry resets counted attempts and resumes ranges that the poison policy stopped, by lease
// id. Without ids it applies to all.
func (o *Operator) Retry(ctx context.Context, leases ...string) error {
	return o.each(ctx, leases, func(l *Lease) error { l.Request.Retry = true; return nil })
}

// Rewind moves the checkpoints of leases, by id; without ids, of all. Changes after the new
// position are delivered again, or skipped if it is further ahead. It returns once the
// request is stored. The owner applies it between two pages.
func (o *Operator) Rewind(ctx context.Context, to Start, leases ...string) error {
	if to.err != nil {
		return to.err
	}
	return o.each(ctx, leases, func(l *Lease) error {
		parts, err := to.place(ctx, o.feed, l.Range)
		if err != nil {
			return err
		}
		if len(parts) != 1 {
			return fmt.Errorf("range %s has %d of the given tokens, want 1", l.Range, len(parts))
		}
		l.Request.Rewind = &parts[0]
		return nil
	})
}

// live lists live leases, all or the named ones.
func (o *Operator) live(ctx context.Context, named []string) ([]Lease, error) {
	leases, err := o.Leases(ctx)
	if err != nil {
		return nil, err
	}
	leases = slices.DeleteFunc(leases, func(l Lease) bool {
		return l.State != LeaseLive || (len(named) > 0 && !slices.Contains(named, l.ID) && !slices.Contains(named, l.Token))
	})
	if len(leases) < len(named) {
		return nil, fmt.Errorf("only %d of the %d named leases exist", len(leases), len(named))
	}
	return leases, nil
}

// each edits the requests of leases, named by id or lease token.
func (o *Operator) each(ctx context.Context, named []string, edit func(*Lease) error) error {
	leases, err := o.live(ctx, named)
	if err != nil {
		return err
	}
	var errs []error
	for _, l := range leases {
		if err := o.update(ctx, l, edit); err != nil {
			errs = append(errs, fmt.Errorf("lease %s: %w", l.Token, err))
		}
	}
	return errors.Join(errs...)
}

// update stores an edit. It retries if the owner wrote in between.
func (o *Operator) update(ctx context.Context, l Lease, edit func(*Lease) error) error {
	for {
		if err := edit(&l); err != nil {
			return err
		}
		_, err := o.store.Replace(ctx, l.encode())
		if !errors.Is(err, ErrETagMismatch) {
			return err
		}
		if l, err = readLease(ctx, o.store, l.ID); err != nil {
			return err
		}
		if l.State != LeaseLive {
			return errors.New("the lease was split meanwhile; try again")
		}
	}
}

func (o *Operator) ids(ctx context.Context) (recordIDs, error) {
	return identify(ctx, o.feed, o.opts.Processor, o.opts.LeasePrefixHost)
}
