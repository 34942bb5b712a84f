package relayfeed

import (
	"context"
	"errors"
	"sync"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/process/failpoint"
)

// Handler is a relay as the handler of a processor. Its Park is the processor's
// DeadLetter, and Observe its observer. It is safe for concurrent use.
type Handler struct {
	relay   *relay.Relay
	resumed sync.Map // lease id -> bool: its ownership began at a checkpoint
}

var _ changefeed.Handler = (*Handler)(nil)

// NewHandler returns a handler that gives changes to r.
func NewHandler(r *relay.Relay) *Handler { return &Handler{relay: r} }

// Handle implements changefeed.Handler.
func (h *Handler) Handle(ctx context.Context, batch *changefeed.Batch) error {
	changes := make([]relay.Change, len(batch.Items))
	for i := range batch.Items {
		item := &batch.Items[i]
		changes[i] = relay.Change{Raw: item.Raw, LSN: item.LSN, Timestamp: item.Time()}
	}
	resumed, _ := h.resumed.Load(batch.Lease)
	owned := relay.Ownership{Lease: batch.Lease, Epoch: batch.Epoch, Resumed: resumed == true}
	failed := h.relay.Handle(ctx, owned, changes)
	if len(failed) == 0 {
		failpoint.Here("page-sent")
		return nil
	}
	for i := range batch.Items { // what the relay does not name is done
		if len(failed) == 0 || failed[0].Index != i {
			batch.Answer(i, nil)
			continue
		}
		answer(batch, &failed[0])
		failed = failed[1:]
	}
	return nil
}

// answer passes the relay's verdict on an event on.
func answer(batch *changefeed.Batch, f *relay.Failure) {
	switch err, _ := errors.AsType[*relay.Error](f.Err); {
	case f.Held: // the one that it waits for is answered for
	case err != nil && err.Class == relay.Refused:
		batch.Answer(f.Index, changefeed.Refuse(f.Err))
	case err != nil && !err.NotBefore.IsZero():
		batch.Answer(f.Index, changefeed.WaitUntil(err.NotBefore, f.Err))
	default:
		batch.Answer(f.Index, f.Err)
	}
}

// Park sets an event aside that was refused too often, or has waited too long.
func (h *Handler) Park(ctx context.Context, letter changefeed.DeadLetter) error {
	err := h.relay.Park(ctx, relay.DeadLetter{
		Change:   relay.Change{Raw: letter.Raw, LSN: letter.LSN, Timestamp: letter.Changed},
		Attempts: letter.Attempts,
		Err:      letter.Err,
		Waiting:  letter.Waiting,
	})
	if err == nil {
		failpoint.Here("parked")
	}
	return err
}

// Observe returns what the handler needs to know of leases.
func (h *Handler) Observe() *changefeed.Observer {
	return &changefeed.Observer{LeaseAcquired: func(e changefeed.LeaseAcquired) {
		h.resumed.Store(e.Lease, e.Continuation != "")
	}}
}
