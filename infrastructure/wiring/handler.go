package wiring

import (
	"context"
	"errors"
	"sync"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/failpoint"
)

// relayHandler gives the pages of the change feed to the relay and translates
// what it says about failures into the processor's words.
type relayHandler struct {
	relay   *relay.Relay
	resumed sync.Map // lease id -> bool: its ownership began at a checkpoint
}

var _ changefeed.Handler = (*relayHandler)(nil)

// Handle implements changefeed.Handler.
func (h *relayHandler) Handle(ctx context.Context, batch *changefeed.Batch) error {
	changes := make([]relay.Change, len(batch.Items))
	for i := range batch.Items {
		item := &batch.Items[i]
		changes[i] = relay.Change{Raw: item.Raw, LSN: item.LSN, Timestamp: item.Time()}
	}
	resumed, _ := h.resumed.Load(batch.Lease)
	tenure := relay.Tenure{Lease: batch.Lease, Epoch: batch.Epoch, Resumed: resumed == true}
	err := h.relay.HandleOwned(ctx, tenure, changes)
	if err == nil {
		failpoint.Here("page-sent")
	}
	return verdict(err)
}

// park sets an event aside that was refused too often.
func (h *relayHandler) park(ctx context.Context, letter changefeed.DeadLetter) error {
	return h.relay.Park(ctx, relay.Letter{
		Change:   relay.Change{Raw: letter.Raw, LSN: letter.LSN, Timestamp: letter.Changed},
		Attempts: letter.Attempts,
		Err:      letter.Err,
	})
}

// observe adds to o what the handler itself needs to know.
func (h *relayHandler) observe(o *changefeed.Observer) *changefeed.Observer {
	next := o.LeaseAcquired
	o.LeaseAcquired = func(e changefeed.LeaseAcquired) {
		h.resumed.Store(e.Lease, e.Continuation != "")
		next(e)
	}
	return o
}

// verdict turns a failed batch into an outage, which spends no attempts, as long
// as waiting may cure any of it, and into poison when every failure is a
// document's own. Held events are not named: they follow their key.
func verdict(err error) error {
	failed, ok := errors.AsType[*relay.BatchError](err)
	if !ok {
		return err
	}
	if failed.Class() != relay.Refused {
		return changefeed.Outage(err)
	}
	poison := &changefeed.PoisonError{}
	for _, f := range failed.Failures {
		if !f.Held {
			poison.Documents = append(poison.Documents, changefeed.Poison{Index: f.Index, Err: f.Err})
		}
	}
	return poison
}
