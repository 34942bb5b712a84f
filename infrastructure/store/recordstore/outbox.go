package recordstore

import (
	"context"
	"fmt"
	"slices"

	"feedbox/domain/aggregate"
	"feedbox/domain/event"
	"feedbox/infrastructure/store/document"
)

// outbox puts domain events into one commit.
type outbox struct {
	encode      func(e event.Event, traceparent string) ([]byte, error)
	traceparent func(ctx context.Context) string
	events      []Event
}

// Add implements mediator.Outbox.
func (o *outbox) Add(ctx context.Context, e event.Event) error {
	data, err := o.encode(e, o.traceparent(ctx))
	if err != nil {
		return err
	}
	meta := e.Metadata()
	id := meta.ID.String()
	text := make([]byte, 0, len(data)+160)
	text = append(text, `{"id":"`...)
	text = append(text, id...)
	text = append(text, `","`+document.KeyMember+`":"`...)
	text = append(text, meta.AggregateID.String()...)
	text = append(text, `","type":"`+document.TypeEvent+`","data":`...)
	text = append(append(text, data...), '}')
	o.events = append(o.events, Event{id, string(text)})
	return nil
}

// collect has each event of the commit put into the outbox. Events of an earlier try of the
// same commit are made anew, and are the same.
func (w *UnitOfWork[A]) collect(ctx context.Context, commit aggregate.Commit) ([]Event, error) {
	o := &outbox{encode: w.of.kind.EventData, traceparent: w.of.options.Traceparent}
	for _, e := range commit.Events {
		var err error
		if w.of.publisher == nil {
			err = o.Add(ctx, e)
		} else {
			err = w.of.publisher.Publish(ctx, o, e)
		}
		id := e.Metadata().ID.String()
		if err == nil && !slices.ContainsFunc(o.events, func(s Event) bool { return s.ID == id }) {
			err = fmt.Errorf("no handler has put %s into the outbox, it would be lost", e.Action())
		}
		if err != nil {
			return nil, fmt.Errorf("commit %s %s: %w", w.of.kind.Noun, w.id, err)
		}
	}
	return o.events, nil
}
