package wiring

import (
	"context"
	"errors"

	"feedbox/application/relay"
	"feedbox/changefeed"
)

// relayHandler gives the pages of the change feed to the relay and translates
// what it says about failures into the processor's words.
func relayHandler(r *relay.Relay) changefeed.Handler {
	return changefeed.HandlerFunc(func(ctx context.Context, batch *changefeed.Batch) error {
		changes := make([]relay.Change, len(batch.Items))
		for i := range batch.Items {
			item := &batch.Items[i]
			changes[i] = relay.Change{Raw: item.Raw, LSN: item.LSN, Timestamp: item.Time()}
		}
		return verdict(r.HandleOwned(ctx, relay.Tenure{Lease: batch.Lease, Epoch: batch.Epoch}, changes))
	})
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
