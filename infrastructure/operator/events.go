package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

// EventFilter selects stored events. The zero value of a field selects all.
type EventFilter struct {
	Key, ID, Action string
	// State is a status. StatusParked includes StatusHeld. StatusDead needs the broker.
	State Status
	// Management is the base URL of the management API of the broker, for StatusDead; see Consumers.
	Management string
	// From and Until bound the time of the commit, Until exclusively.
	From, Until time.Time
	// Limit is about the number of events of a page. Required.
	Limit int
	// Continuation is that of the previous page.
	Continuation string
}

// ListedEvent is a stored event with its status.
type ListedEvent struct {
	relay.RecentEvent
	Status Status
	// ParkedAt and DeadAt replace StoredAt, which is not known, in lists of parked and dead events.
	// DeadAt is zero if the broker does not record it.
	ParkedAt, DeadAt time.Time
	// Consumer and Letter identify the dead letter of a dead event.
	Consumer, Letter string
}

// At returns the time by which a list is ordered; zero if it is unknown.
func (e *ListedEvent) At() time.Time { return cmp.Or(e.StoredAt, e.ParkedAt, e.DeadAt) }

// EventPage is a page of events, the newest first.
type EventPage struct {
	Events []ListedEvent
	// Continuation is "" after the last page.
	Continuation string
	// Examined is the number of events that were compared with the filter, back to Back. No newer event
	// matches it but those of this and earlier pages.
	Examined int
	Back     time.Time
	// Omitted lists consumers with more dead letters than those that were read.
	Omitted []string
	// Cut lists keys with more parked events than those that were read, for StatusParked.
	Cut []string
}

// The bounds of one page. A filter that matches few events may give an empty page with a continuation,
// because no store has an index for it.
const (
	maxExamined = 1000
	maxListing  = 5 * time.Second
	maxFilter   = 1023 // bytes, the longest id of Cosmos DB
)

// Events returns a page of the stored events. The snapshot, which must be older than this call, proves
// the statuses. The cost does not depend on the number of stored events: with a key, it is that of
// reading its events; for parked events, that of reading the first of some keys; for dead ones, that of reading
// maxExamined letters of each consumer; else that of at most maxExamined events, see the Recent of the
// store.
//
// Faults: Invalid for a filter or continuation that is none, Conflict for a store without a list.
func (o *Operator) Events(ctx context.Context, s Snapshot, f EventFilter) (EventPage, error) {
	for name, text := range map[string]string{"key": f.Key, "id": f.ID, "action": f.Action} {
		if len(text) > maxFilter || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return EventPage{}, fault.New(fault.Invalid, "invalid_filter", fmt.Sprintf("the %s of the filter is not a text of up to %d bytes", name, maxFilter))
		}
	}
	if states := States(); f.State != "" && !slices.Contains(states, f.State) {
		return EventPage{}, fault.New(fault.Invalid, "invalid_filter", fmt.Sprintf("there is no state %q: give one of %v", f.State, states))
	}
	if !f.From.IsZero() && !f.Until.IsZero() && !f.From.Before(f.Until) {
		return EventPage{}, fault.New(fault.Invalid, "invalid_filter", "the time from which events are listed is not before the one until which they are")
	}
	switch {
	case f.State == StatusParked:
		return o.parkedEvents(ctx, f)
	case f.State == StatusDead:
		return o.deadEvents(ctx, f)
	case f.Key != "":
		page, err := o.eventsOfKey(ctx, s, f)
		if !fault.Is(err, fault.Invalid) { // otherwise one of them is malformed
			return page, err
		}
	}
	return o.recentEvents(ctx, s, f)
}

// States returns the statuses that a filter can select.
func States() []Status {
	return []Status{StatusWaiting, StatusSent, StatusParked, StatusSkipped, StatusDead, StatusUnknown}
}

func (f *EventFilter) has(e *ListedEvent) bool {
	at := e.At()
	return (f.Key == "" || e.Key == f.Key) && (f.ID == "" || e.ID == f.ID) && (f.Action == "" || e.Action == f.Action) &&
		(f.State == "" || e.Status == f.State || f.State == StatusParked && e.Status == StatusHeld) &&
		(at.IsZero() || !at.Before(f.From.Truncate(time.Second)) && (f.Until.IsZero() || at.Before(f.Until)))
}

// take adds the events that match to the page.
func (p *EventPage) take(f *EventFilter, events []ListedEvent) {
	for i := range events {
		if p.Examined++; f.has(&events[i]) {
			p.Events = append(p.Events, events[i])
		}
	}
}

// recentEvents examines the latest events until the page is full.
func (o *Operator) recentEvents(ctx context.Context, s Snapshot, f EventFilter) (page EventPage, err error) {
	lister, ok := o.store.Events.(relay.Lister)
	if !ok {
		return page, fault.New(fault.Conflict, "no_list", "this store cannot list the events of all keys: give a key")
	}
	began, gates := time.Now(), map[string]bool{}
	closed, err := o.Parked.Gates(ctx)
	if err != nil {
		return page, err
	}
	for i := range closed {
		gates[closed[i].Key] = true
	}
	q := relay.RecentQuery{From: f.From.Truncate(time.Second), Until: f.Until, ID: f.ID, Limit: f.Limit, Continuation: f.Continuation}
	if f.From.IsZero() {
		q.From = time.Time{}
	}
	for {
		found, err := lister.Recent(ctx, q)
		if err != nil {
			return page, err
		}
		listed, err := o.withStatus(ctx, s, found.Events, gates)
		if err != nil {
			return page, err
		}
		page.take(&f, listed)
		page.Back, page.Continuation, q.Continuation = found.Back, found.Continuation, found.Continuation
		if q.Continuation == "" || len(page.Events) >= f.Limit || page.Examined >= maxExamined || time.Since(began) > maxListing {
			return page, nil
		}
	}
}

// withStatus adds the statuses. The parked events were read after the snapshot: an event that left them
// in between was sent or skipped.
func (o *Operator) withStatus(ctx context.Context, s Snapshot, events []relay.RecentEvent, gates map[string]bool) ([]ListedEvent, error) {
	listed, proved, lines := make([]ListedEvent, len(events)), o.proof(ctx, s), map[string]func(*relay.StoredEvent, Status) Status{}
	var sent []relay.EventRef
	for i := range events {
		e := &listed[i]
		e.RecentEvent = events[i]
		e.Status = proved(&e.StoredEvent)
		if gates[e.Key] && lines[e.Key] == nil {
			line, err := o.ParkedKey(ctx, e.Key, timelineEvents)
			if err != nil && !fault.Is(err, fault.NotFound) && !unconfirmed(err) {
				return nil, err
			}
			lines[e.Key] = line.statuses()
		}
		if line := lines[e.Key]; line != nil {
			e.Status = line(&e.StoredEvent, e.Status)
		}
		if e.Status == StatusSent {
			sent = append(sent, relay.EventRef{Key: e.Key, ID: e.ID})
		}
	}
	if len(sent) == 0 {
		return listed, nil
	}
	skipped, err := o.Parked.SkippedAmong(ctx, sent)
	for i := range listed {
		if e := &listed[i]; skipped[relay.EventRef{Key: e.Key, ID: e.ID}] {
			e.Status = StatusSkipped
		}
	}
	return listed, err
}

// eventsOfKey reads all events of the key, which the store orders by sequence. The continuation is the
// last event of the previous page.
func (o *Operator) eventsOfKey(ctx context.Context, s Snapshot, f EventFilter) (page EventPage, err error) {
	timeline, err := o.Timeline(ctx, f.Key, s)
	switch {
	case err != nil:
		return page, err
	case timeline.Trouble != "":
		return page, fault.New(fault.Invalid, "", timeline.Trouble)
	}
	var after string
	if err := relay.Resume(f.Continuation, &after); err != nil {
		return page, err
	}
	slices.Reverse(timeline.Events)
	if after != "" {
		at := slices.IndexFunc(timeline.Events, func(e Entry) bool { return e.ID == after })
		if at < 0 {
			return page, fault.New(fault.Invalid, "invalid_continuation", "the last event of the previous page has expired, or the continuation is not one of this key; start from the newest events")
		}
		timeline.Events = timeline.Events[at+1:]
	}
	for _, e := range timeline.Events {
		page.Back = e.CommittedAt
		page.take(&f, []ListedEvent{{RecentEvent: relay.RecentEvent{StoredEvent: relay.StoredEvent{Message: e.Message, StoredAt: e.CommittedAt}}, Status: e.Status}})
		if len(page.Events) == f.Limit && e.ID != timeline.Events[len(timeline.Events)-1].ID {
			page.Continuation = relay.Continue(e.ID)
			break
		}
	}
	return page, nil
}

// parkedAt is the position of a list of parked events: after a key.
type parkedAt struct {
	At  int64  `json:"t"`
	Key string `json:"k"`
}

// parkedEvents lists parked events from the parked ones, because they may be the oldest by far: the key
// that was parked last first, and its events in order.
func (o *Operator) parkedEvents(ctx context.Context, f EventFilter) (page EventPage, err error) {
	var after parkedAt
	if err := relay.Resume(f.Continuation, &after); err != nil {
		return page, err
	}
	gates, err := o.Parked.Gates(ctx)
	position := func(g *relay.Gate) parkedAt { return parkedAt{g.Closing.At.UnixMicro(), g.Key} }
	compare := func(a, b parkedAt) int { return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(a.Key, b.Key)) }
	gates = slices.DeleteFunc(gates, func(g relay.Gate) bool {
		return f.Key != "" && g.Key != f.Key || f.Continuation != "" && compare(position(&g), after) <= 0
	})
	slices.SortFunc(gates, func(a, b relay.Gate) int { return compare(position(&a), position(&b)) })
	began := time.Now()
	for i := range gates {
		line, err := o.ParkedKey(ctx, gates[i].Key, timelineEvents)
		if err != nil && !fault.Is(err, fault.NotFound) && !unconfirmed(err) {
			return page, err
		}
		status := line.statuses()
		page.Back = gates[i].Closing.At
		if err == nil && line.Gate.Events > int64(len(line.Line)) {
			page.Cut = append(page.Cut, gates[i].Key)
		}
		for _, p := range line.Line {
			e := ListedEvent{ParkedAt: p.ParkedAt, RecentEvent: relay.RecentEvent{Trouble: p.Error}}
			e.ID, e.Key, e.Action, e.Sequence, e.Body = p.ID, p.Key, p.Action, p.Sequence, p.Document
			e.Status = status(&e.StoredEvent, StatusUnknown)
			page.take(&f, []ListedEvent{e})
		}
		if full := len(page.Events) >= f.Limit || page.Examined >= maxExamined || time.Since(began) > maxListing; full && i < len(gates)-1 {
			page.Continuation = relay.Continue(position(&gates[i]))
			break
		}
	}
	return page, err
}
