package event_test

import (
	"fmt"
	"slices"
	"testing"

	"feedbox/domain/event"
)

// lineAdded and addressChanged are events of an order: every line counts, but only the
// last address.
type (
	lineAdded struct {
		event.Meta
		line string
	}
	addressChanged struct {
		event.Meta
		address string
	}
)

func (lineAdded) Action() string      { return "LineAddedEvent" }
func (addressChanged) Action() string { return "AddressChangedEvent" }

func (e lineAdded) Stamped(version, sequence int64) event.Event {
	e.Meta = e.At(version, sequence)
	return e
}

func (e addressChanged) Stamped(version, sequence int64) event.Event {
	e.Meta = e.At(version, sequence)
	return e
}

// Two lines added in one commit are two events.
func TestRecordKeepsAllAndRecordLastReplaces(t *testing.T) {
	var r event.Recorder
	r.Record(lineAdded{line: "pens"})
	r.RecordLast(addressChanged{address: "Bern"})
	r.Record(lineAdded{line: "paper"})
	r.RecordLast(addressChanged{address: "Basel"})
	var got []string
	for _, e := range r.Stamped(2, 7) {
		meta := e.Metadata()
		got = append(got, fmt.Sprint(meta.AggregateVersion, " ", meta.Sequence, " ", text(e)))
	}
	want := []string{"2 8 pens", "2 9 Basel", "2 10 paper"}
	if !slices.Equal(got, want) || r.Len() != 3 {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Of several recorded events of the action, RecordLast replaces only the last.
func TestRecordLastReplacesTheLast(t *testing.T) {
	var r event.Recorder
	r.Record(lineAdded{line: "pens"})
	r.Record(lineAdded{line: "paper"})
	r.RecordLast(lineAdded{line: "ink"})
	if events := r.Stamped(1, 0); len(events) != 2 || text(events[0]) != "pens" || text(events[1]) != "ink" {
		t.Errorf("got %v", events)
	}
}

func text(e event.Event) string {
	switch e := e.(type) {
	case lineAdded:
		return e.line
	case addressChanged:
		return e.address
	default:
		return "?"
	}
}
