package changefeed

import (
	"context"
	"errors"
)

// env is what a processor was given, and who its present run is. Every room of the
// package has it, and nothing in it changes once ids are known.
type env struct {
	feed    Feed
	store   LeaseStore
	handler Handler
	opts    Options // resolved
	clock   Clock
	obs     *Observer

	self        hostKey
	incarnation string
	ids         recordIDs // zero until the container is identified
	relist      signal    // look at the leases now: something has changed
}

// withStoreTimeout bounds one request to the lease store that others will make up for.
func (e *env) withStoreTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, e.opts.Expiry/4)
}

// reportError tells the observer of an operation that is tried again.
func (e *env) reportError(lease, op string, err error) {
	if err != nil {
		tell(e.obs.LeaseError, LeaseError{Lease: lease, Op: op, Err: err})
	}
}

// unlessLostRace is err of a conditional write, or nil if another host was first: the
// record is gone, or is not the one that was seen.
func unlessLostRace(err error) error {
	if errors.Is(err, ErrETagMismatch) || errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// signal is a request to look at something now; it does not block.
type signal chan struct{} // capacity 1

func newSignal() signal { return make(signal, 1) }

func (h signal) send() {
	select {
	case h <- struct{}{}:
	default:
	}
}
