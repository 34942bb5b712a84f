package cosmos

import (
	"context"

	"feedbox/application/mediator"
	"feedbox/domain/event"
)

// EventRepository puts domain events into the transaction of one unit of work.
type EventRepository struct {
	documents *ContainerContext
}

var _ mediator.Outbox = (*EventRepository)(nil)

// Add implements mediator.Outbox.
func (r *EventRepository) Add(ctx context.Context, e event.Event) error {
	o, err := encodeEvent(e, r.documents.options.EventTTL, r.documents.options.Traceparent(ctx))
	if err != nil {
		return err
	}
	return r.documents.Create(o)
}
