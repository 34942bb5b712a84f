package document

import (
	"fmt"
	"slices"

	"feedbox/domain/event"
	"feedbox/infrastructure/store/internal/jsontext"
)

// EventSchemaVersion is the version of the form of events. It is incremented when a member
// changes its meaning or is removed; readers must accept new members.
const EventSchemaVersion = 1

// EventMembers are the members of an event's data that all events have.
var EventMembers = []string{defaultIDMember, "action", "id", "createdAt", "aggregateVersion", "sequence", "ordinal", "schemaVersion", "traceparent"}

// room is the initial buffer for the data of an event, in bytes.
const room = 640

// EventData returns the data of an event's document: the members that the kind's encoder
// writes, then those that all events have. Ordinal is the place of the event in its
// transaction, from 1. Traceparent (W3C Trace Context) may be empty.
func (k *Kind[A]) EventData(e event.Event, ordinal int, traceparent string) ([]byte, error) {
	meta := e.Metadata()
	encode := k.Events[e.Action()]
	if encode == nil {
		return nil, fmt.Errorf("encode event %s: the kind has no encoder for %s (%T)", meta.ID, e.Action(), e)
	}
	data, err := encode(append(make([]byte, 0, room), '{'), e)
	if err != nil {
		return nil, fmt.Errorf("encode event %s (%s): %w", meta.ID, e.Action(), err)
	}
	if k.hasMember != nil && k.IDMember != defaultIDMember { // the encoder of a JSON kind does not know the name
		if err := refuseMembers(append(slices.Clip(data), '}'), nil, []string{k.IDMember}); err != nil {
			return nil, fmt.Errorf("encode event %s (%s): %w", meta.ID, e.Action(), err)
		}
	}
	w := jsontext.Extend(data)
	w.UUID(k.IDMember, meta.AggregateID)
	w.Text("action", e.Action())
	w.UUID("id", meta.ID)
	w.Time("createdAt", meta.CreatedAt)
	w.Integer("aggregateVersion", meta.AggregateVersion)
	w.Integer("sequence", meta.Sequence)
	w.Integer("ordinal", int64(ordinal))
	w.Integer("schemaVersion", EventSchemaVersion)
	w.TextIfAny("traceparent", traceparent)
	w.End()
	if data, err = w.Done(); err != nil {
		return nil, fmt.Errorf("encode event %s: %w", meta.ID, err)
	}
	return data, nil
}
