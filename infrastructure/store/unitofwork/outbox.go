package unitofwork

import (
	"context"
	"fmt"
	"slices"

	"feedbox/application/mediator"
	"feedbox/domain/event"
)

// Publisher passes a domain event to its handlers, which put it into the outbox. The
// mediator is one.
type Publisher interface {
	// Publish fails when the event has no handler or a handler fails.
	Publish(ctx context.Context, outbox mediator.Outbox, e event.Event) error
}

// outbox collects the events of one change.
type outbox struct {
	encode  func(e event.Event, ordinal int, traceparent string) ([]byte, error)
	options *Options
	before  int // number of events of earlier changes of the transaction
	events  []Event
}

var _ mediator.Outbox = (*outbox)(nil)

// Add implements mediator.Outbox.
func (o *outbox) Add(ctx context.Context, e event.Event) error {
	data, err := o.encode(e, o.before+len(o.events)+1, o.options.Traceparent(ctx))
	if err != nil {
		return err
	}
	meta := e.Metadata()
	if err := o.options.CheckEvent(meta.ID, data); err != nil {
		return err
	}
	o.events = append(o.events, Event{ID: meta.ID.String(), Key: meta.AggregateID.String(), Data: data})
	return nil
}

// publish puts each event into the outbox, through the publisher if there is one. It fails if
// the handlers leave one out, because that event would be lost.
func (o *outbox) publish(ctx context.Context, p Publisher, events []event.Event) error {
	for _, e := range events {
		var err error
		if p == nil {
			err = o.Add(ctx, e)
		} else {
			err = p.Publish(ctx, o, e)
		}
		if err != nil {
			return err
		}
		id := e.Metadata().ID.String()
		if !slices.ContainsFunc(o.events, func(added Event) bool { return added.ID == id }) {
			return fmt.Errorf("no handler has put %s into the outbox, it would be lost", e.Action())
		}
	}
	return nil
}
