// Package relayfeed connects the change feed processor (package changefeed) with the relay
// (package relay): it passes changes to the relay and the relay's verdicts to the processor.
package relayfeed

import (
	"context"
	"errors"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
)

// Handler is the handler of a processor that passes changes to a relay. Use its Park as the
// processor's DeadLetter. It is safe for concurrent use.
type Handler struct{ relay *relay.Relay }

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
	owned := relay.Ownership{Lease: batch.Lease, Epoch: batch.Epoch, History: batch.History, Resumed: batch.Resumed}
	failed := h.relay.Handle(ctx, owned, changes)
	if len(failed) == 0 {
		return nil
	}
	for i := range batch.Items { // changes that the relay does not name are done
		if len(failed) == 0 || failed[0].Index != i {
			batch.Answer(i, nil)
			continue
		}
		answer(batch, &failed[0])
		failed = failed[1:]
	}
	return nil
}

// answer passes the relay's verdict on an event to the processor.
func answer(batch *changefeed.Batch, f *relay.Failure) {
	switch err, _ := errors.AsType[*relay.Error](f.Err); {
	case f.Held: // the event that it waits for has its own verdict
	case err != nil && err.Class == relay.Refused:
		batch.Answer(f.Index, changefeed.Refuse(f.Err))
	case f.Blamed: // the processor parks it after its WaitLimit
		batch.Answer(f.Index, f.Err)
	case err != nil:
		batch.Answer(f.Index, changefeed.WaitUntil(err.NotBefore, f.Err))
	default:
		batch.Answer(f.Index, changefeed.WaitUntil(time.Time{}, f.Err))
	}
}

// Park parks an event that was refused too often or has waited too long.
func (h *Handler) Park(ctx context.Context, letter changefeed.DeadLetter) error {
	return h.relay.Park(ctx, relay.DeadLetter{
		Change:   relay.Change{Raw: letter.Raw, LSN: letter.LSN, Timestamp: letter.Changed},
		Attempts: letter.Attempts,
		Err:      letter.Err,
		Waiting:  letter.Waiting,
	})
}

// Ranges lets a relay.Drainer work under the leases of a processor.
type Ranges struct{ Processor *changefeed.Processor }

var _ relay.Ranges = Ranges{}

// Own implements relay.Ranges.
func (r Ranges) Own(ctx context.Context, key string, do func(ctx context.Context) error) error {
	err := r.Processor.Own(ctx, key, do)
	if errors.Is(err, changefeed.ErrNotOwned) {
		return errors.Join(relay.ErrNotOwned, err)
	}
	return err
}
