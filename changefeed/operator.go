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
	o := &Operator{feed: timedFeed{feed, defaultReadTimeout}, store: timedStore{leases, defaultReadTimeout, defaultReadTimeout}}
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
	leases, err := o.all(ctx)
	return slices.DeleteFunc(leases, func(l Lease) bool { return l.State == LeaseDone }), err
}

// all is Leases with those that are done.
func (o *Operator) all(ctx context.Context) ([]Lease, error) {
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
		default:
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
	leases, err := o.live(ctx)
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
// with their next listing; see Options.Acquire. Pausing twice is no error.
func (o *Operator) Pause(ctx context.Context) error {
	ids, err := o.ids(ctx)
	if err != nil {
		return err
	}
	if _, err := o.store.Create(ctx, pauseRecord(ids, o.opts.Now())); err != nil && !errors.Is(err, ErrExists) {
		return fmt.Errorf("pause: %w", err)
	}
	return nil
}

// pauseRecord returns the record that exists while all hosts are paused.
func pauseRecord(ids recordIDs, at time.Time) Record {
	return Record{ID: ids.pause(), Body: mustMarshal(map[string]string{"id": ids.pause(), "timestamp": at.UTC().Format(timestampFormat)})}
}

// Resume ends Pause. Without a pause it does nothing.
func (o *Operator) Resume(ctx context.Context) error {
	ids, err := o.ids(ctx)
	if err != nil {
		return err
	}
	err = repeatConflict(ctx, func() error {
		record, err := o.store.Read(ctx, ids.pause())
		if errors.Is(err, ErrNotFound) {
			// A replica may not have the record yet. A conditional write knows: with the ETag of another
			// record it fails in another way if there is a pause, and Read is repeated.
			record, err = o.store.Read(ctx, ids.info())
		}
		if err == nil {
			err = o.store.Delete(ctx, ids.pause(), record.ETag)
		}
		return err
	})
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("resume: the hosts may still be paused, try again: %w", err)
	}
	return nil
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

// Replay moves the checkpoints of leases back to a time, by id or token; without either, of all. Unlike
// Rewind it never skips a change: a lease that Lease.NotReplayed names a reason for is left as it is, and
// the error has the reason. Requests of other operators may have changed leases since they were listed.
func (o *Operator) Replay(ctx context.Context, from time.Time, leases ...string) error {
	return o.each(ctx, leases, func(l *Lease) error {
		to := RangeToken{Range: l.Range, Since: from}
		if l.replays(to) { // a part of a lease that was changed before its split
			return nil
		}
		if why := l.NotReplayed(from); why != "" {
			return fmt.Errorf("it is not moved back to %s, because it %s", from.UTC().Format(time.RFC3339), why)
		}
		l.Request.Rewind = &to
		return nil
	})
}

// NotReplayed returns the reason for which a replay from a time may not move the lease, because that could
// skip changes; "" if there is none.
func (l *Lease) NotReplayed(from time.Time) string {
	switch changed := time.Unix(l.ChangeTime, 0); {
	case l.Request.Rewind != nil: // perhaps to an earlier position, or in another history
		return "has a rewind or restart that its owner has not carried out yet"
	case l.ChangeTime == 0:
		return "has handled nothing yet"
	case !changed.After(from): // unhandled changes may be as old
		return "has not come to that time"
	}
	return ""
}

// replays reports whether the lease was moved to a position and has handled nothing since, or will be moved there.
func (l *Lease) replays(to RangeToken) bool {
	at := l.position()
	if l.Request.Rewind != nil {
		at = *l.Request.Rewind
	}
	return l.Request.History == "" && at.Continuation == "" && at.Since.Equal(to.Since)
}

// Restart moves leases to the beginning with a new history, by id; without ids, all. Use it
// after the container was restored or failed over (AheadError): equal positions then are other
// changes. The owner releases the lease, and the next acquisition applies the request. All
// changes that the container still has are delivered again, and the progress that handlers
// keep of the history before does not count for them (LeaseRef.History).
func (o *Operator) Restart(ctx context.Context, leases ...string) error {
	history := newHistory()
	return o.each(ctx, leases, func(l *Lease) error {
		l.Request.Rewind, l.Request.History = &RangeToken{Range: l.Range}, history
		l.Request.Release = l.Owner != ""
		return nil
	})
}

// live lists live leases.
func (o *Operator) live(ctx context.Context) ([]Lease, error) {
	leases, err := o.Leases(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(leases, func(l Lease) bool { return l.State != LeaseLive }), nil
}

// errSplitting means that a request would reach no owner. errUnlisted means that it did not reach a range.
var (
	errSplitting = errors.New("it is being split, and the request would be lost; try again when its parts are live")
	errUnlisted  = errors.New("no lease of it is listed, so the request did not reach it; try again when it has one")
)

// each edits the requests of leases, named by id or lease token, some at a time. While one of them is being
// split it waits for the parts, because no owner reads the requests of a lease that is not live. It also waits
// for a part that is not listed, because one listing may be from before its creation for some leases.
func (o *Operator) each(ctx context.Context, named []string, edit func(*Lease) error) error {
	done := map[string]bool{}
	var ranges []FeedRange // the selected ones
	pause := backoff{min: 100 * time.Millisecond, max: 2 * time.Second}
	for {
		leases, err := o.all(ctx)
		if err != nil {
			return err
		}
		if ranges == nil {
			if ranges, err = selectRanges(leases, named); err != nil {
				return err
			}
		}
		leases = slices.DeleteFunc(leases, func(l Lease) bool { return l.State == LeaseDone })
		failed := make([]error, len(leases))
		_ = inParallel(len(leases), func(i int) error {
			l := leases[i]
			switch {
			case done[l.ID] || !slices.ContainsFunc(ranges, func(r FeedRange) bool { return r.Contains(l.Range) }):
			case l.State == LeaseLive:
				failed[i] = o.update(ctx, l, edit)
			default:
				failed[i] = errSplitting
			}
			return nil
		})
		var errs, splitting []error
		for i, err := range failed {
			done[leases[i].ID] = err == nil
			if err != nil {
				err = fmt.Errorf("lease %s: %w", leases[i].Token, err)
			}
			if errors.Is(err, errSplitting) {
				splitting = append(splitting, err)
			} else if err != nil {
				errs = append(errs, err)
			}
		}
		listed := make([]FeedRange, len(leases))
		for i := range leases {
			listed[i] = leases[i].Range
		}
		for _, r := range ranges {
			for _, rest := range r.subtract(listed) {
				splitting = append(splitting, fmt.Errorf("range %s: %w", rest, errUnlisted))
			}
		}
		if len(errs) > 0 || len(splitting) == 0 || pause.attempt >= splitAttempts {
			return errors.Join(append(errs, splitting...)...)
		}
		if err := sleep(ctx, systemClock{}, pause.next(nil), nil); err != nil {
			return err
		}
	}
}

// splitAttempts is how often a request waits for a split, for about 10 seconds in all. Running
// hosts complete one sooner.
const splitAttempts = 8

// selectRanges returns the ranges of the named leases, or of all for none. That of a lease that is done has other
// leases, whether they are listed or not.
func selectRanges(leases []Lease, named []string) ([]FeedRange, error) {
	var ranges []FeedRange
	for _, l := range leases {
		if len(named) == 0 || l.State != LeaseDone && (slices.Contains(named, l.ID) || slices.Contains(named, l.Token)) {
			ranges = append(ranges, l.Range)
		}
	}
	if len(ranges) < len(named) {
		return nil, fmt.Errorf("only %d of the %d named leases exist", len(ranges), len(named))
	}
	return ranges, nil
}

// update stores an edit. It retries if the owner wrote in between.
func (o *Operator) update(ctx context.Context, l Lease, edit func(*Lease) error) error {
	changed := false
	return repeatConflict(ctx, func() (err error) {
		if changed { // read just before the write, because the owner writes again soon
			if l, err = readLease(ctx, o.store, l.ID); err != nil {
				return err
			}
		}
		changed = true
		if l.State != LeaseLive {
			return errSplitting
		}
		if err := edit(&l); err != nil {
			return err
		}
		_, err = o.store.Replace(ctx, l.encode())
		return err
	})
}

// repeatConflict calls do until it returns no ErrETagMismatch: once more at once, and then a few
// times with growing pauses, because a store may return old versions for some time.
func repeatConflict(ctx context.Context, do func() error) error {
	pause := backoff{min: 50 * time.Millisecond, max: 2 * time.Second}
	for conflicts := 0; ; conflicts++ {
		err := do()
		if !errors.Is(err, ErrETagMismatch) || conflicts == 8 {
			return err
		}
		if conflicts == 0 {
			continue
		}
		if err := sleep(ctx, systemClock{}, pause.next(nil), nil); err != nil {
			return err
		}
	}
}

func (o *Operator) ids(ctx context.Context) (recordIDs, error) {
	_, ids, err := identify(ctx, o.feed, o.opts.Processor, o.opts.LeasePrefixHost)
	return ids, err
}
