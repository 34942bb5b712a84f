// Package verify checks the results of a run of the whole system against the promises
// of the outbox. All tests of the whole system use it, and so does feedbox-dev verify.
//
// It does not depend on Cosmos DB, Service Bus or HTTP. A [Run] has the outcomes that
// clients saw, the stored documents and the messages of a consumer. [DecodeDocument]
// decodes stored documents for it. The package only reads its input, so it is safe for
// concurrent use.
package verify

import (
	"fmt"
	"sort"
	"strings"
)

// Aggregate is the stored state of one aggregate.
type Aggregate struct {
	ID       string
	Version  int64 // commits so far
	Sequence int64 // events so far
}

// Event is one stored event document.
type Event struct {
	ID       string
	Key      string // partition key
	Action   string
	Version  int64
	Sequence int64
	// Feed, LSN and EPK are the position of the event: the change feed, if there are
	// several, the number of its transaction there, and the effective partition key of its
	// key. Only I6 needs them.
	Feed string
	LSN  int64
	EPK  string
	// Expired reports that the store no longer has the event.
	Expired bool
}

// Message is one message as a consumer received it, in the order of arrival.
type Message struct {
	ID       string
	Session  string
	Subject  string
	Version  int64
	Sequence int64
}

// Run is the evidence of a test at the end of a run of the whole system.
type Run struct {
	// Acked counts the changes of each aggregate that clients saw acknowledged.
	Acked map[string]int
	// Unknown counts the changes of each aggregate without a known outcome.
	Unknown map[string]int
	// LostCreates counts the creates without a reply: the store may have as many aggregates
	// of version 1 that no client knows.
	LostCreates int
	// Aggregates and Events are read from the store after the run has settled.
	Aggregates []Aggregate
	Events     []Event
	// Messages has the messages of one consumer of the topic, in order of arrival.
	Messages []Message
	// Parked has the ids of events that were parked instead of sent.
	Parked map[string]bool

	// The other fields are optional, for tests that observe them.

	// Expires reports that events may have expired before they were sent. Such a loss must
	// have been reported.
	Expires bool
	// Reported has the losses that a relay or a consumer reported. Warned reports that a
	// relay warned of old events: then losses of expired events count as announced, even if
	// no report names them.
	Reported []Loss
	Warned   bool
	// Poison has the ids of documents that cannot be sent and of their successors of the
	// same key. They are not among Events.
	Poison map[string]bool
	// Checkpoints has the positions that relays wrote or tried to write.
	Checkpoints []Checkpoint
	// SetAside has the events that were parked, including those sent later, by id: the
	// number of Checkpoints written before. The time of a parked event that it does not have is
	// not checked.
	SetAside map[string]int
	// Consumed reports that handlers of consumers were observed, also if they received nothing;
	// Handled not nil means the same. Handled has the messages that they received, in order.
	// Repeats counts the redeliveries that they did not receive.
	Consumed bool
	Handled  []Message
	Repeats  int
	// Once reports that an effect of a handler is stored together with the mark of its event.
	// Then no event may be handled twice. Skipped has the ids of messages that an operator let
	// the consumers skip.
	Once    bool
	Skipped map[string]bool
	// Settled is the state of the leases after the faults ended.
	Settled *Settled
	// Other has the violations that the test itself found.
	Other []string
}

// Verify returns the lines of Report. No line means that the promises were kept.
func (r Run) Verify() []string { return r.Report().Lines() }

// Report checks the promises of the outbox.
//
//	I1 atomic   an aggregate's version n is stored with its events, or not at all
//	I2 no loss  every acknowledged change is stored, every stored event arrived or is parked
//	I3 order    the messages of a session have sequence 1, 2, 3, ...; so have the messages
//	            of handlers, apart from redeliveries
//	I4 dedup    no message id arrived twice; none was handled twice, if handlers prevent that
//	I5 no ghost every message is a stored event
//	I6 position no checkpoint passed an event that the broker had not accepted
//	I7 liveness every lease got an owner in time, and the leases are balanced
//	I8 poison   an event that cannot be sent is parked, with its successors and nothing else
//	I10 ids     no event was sent under two ids, and no two events have one id
//
// The test itself must check I9: bounded memory, and no leaked goroutine.
func (r Run) Report() Report {
	v := violations{Broken: make(map[string]int)}
	events := make(map[string]Event, len(r.Events))
	perKey := make(map[string][]Event)
	for _, e := range r.Events {
		if other, twice := events[e.ID]; twice { // the broker would drop one of them
			v.add("I10 id %s is that of two events: key %s, sequence %d, and key %s, sequence %d", e.ID, other.Key, other.Sequence, e.Key, e.Sequence)
		}
		events[e.ID] = e
		perKey[e.Key] = append(perKey[e.Key], e)
	}
	r.verifyStore(&v, perKey)
	r.verifyMessages(&v, events)
	r.verifyHandled(&v)
	r.verifyCheckpoints(&v)
	r.verifyPoison(&v, events)
	r.Settled.verify(&v)
	for _, other := range r.Other {
		v.add("%s", other)
	}
	return Report(v)
}

func (r Run) verifyStore(v *violations, perKey map[string][]Event) {
	seen := make(map[string]bool, len(r.Aggregates))
	strangers := 0
	for _, c := range r.Aggregates {
		seen[c.ID] = true
		if r.Acked[c.ID] == 0 && r.Unknown[c.ID] == 0 && c.Version == 1 {
			strangers++
		} else if acked, unknown := int64(r.Acked[c.ID]), int64(r.Unknown[c.ID]); r.Acked != nil &&
			(c.Version < acked || c.Version > acked+unknown) {
			v.add("I2 aggregate %s: version %d after %d acknowledged changes and %d of unknown outcome", c.ID, c.Version, acked, unknown)
		}
		list := perKey[c.ID]
		sort.Slice(list, func(i, j int) bool { return list[i].Sequence < list[j].Sequence })
		if int64(len(list)) != c.Sequence {
			v.add("I1 aggregate %s: %d events stored, its last sequence is %d", c.ID, len(list), c.Sequence)
			continue
		}
		versions := make(map[int64]bool)
		for i, e := range list {
			versions[e.Version] = true
			if e.Sequence != int64(i+1) {
				v.add("I1 aggregate %s: event %s has sequence %d, want %d", c.ID, e.ID, e.Sequence, i+1)
			}
		}
		for n := int64(1); n <= c.Version; n++ {
			if !versions[n] {
				v.add("I1 aggregate %s: no event of version %d of %d", c.ID, n, c.Version)
			}
		}
	}
	if r.Acked != nil && strangers > r.LostCreates {
		v.add("I2 %d aggregates are stored that no client made; %d creates got no reply", strangers, r.LostCreates)
	}
	for id, acked := range r.Acked {
		if acked > 0 && !seen[id] {
			v.add("I2 aggregate %s: %d changes acknowledged, not stored", id, acked)
		}
	}
	for key, list := range perKey {
		if !seen[key] {
			v.add("I1 key %s: %d events without their aggregate", key, len(list))
		}
	}
}

func (r Run) verifyMessages(v *violations, events map[string]Event) {
	arrived := make(map[string]bool, len(r.Messages))
	last := make(map[string]int64)
	places := make(map[place]string, len(r.Messages))
	reported := r.reports()
	for _, m := range r.Messages {
		if arrived[m.ID] {
			v.add("I4 message %s of session %s arrived twice", m.ID, m.Session)
			continue
		}
		arrived[m.ID] = true
		e, stored := events[m.ID]
		switch {
		case !stored:
			v.add("I5 message %s of session %s is no stored event", m.ID, m.Session)
		case e.Key != m.Session, e.Action != m.Subject, e.Sequence != m.Sequence, e.Version != m.Version:
			v.add("I5 message %s: %+v differs from the stored event %+v", m.ID, m, e)
		}
		if other, taken := places[place{m.Session, m.Sequence}]; taken && stored {
			v.add("I10 session %s: sequence %d was sent as %s and as %s", m.Session, m.Sequence, other, m.ID)
		}
		places[place{m.Session, m.Sequence}] = m.ID
		if want := last[m.Session] + 1; m.Sequence != want && (m.Sequence < want || !reported.cover(m.Session, want, m.Sequence-1)) {
			v.add("I3 session %s: sequence %d arrived where %d was due", m.Session, m.Sequence, want)
		}
		last[m.Session] = max(last[m.Session], m.Sequence)
	}
	for id, e := range events {
		if !arrived[id] && !r.Parked[id] && !reported.cover(e.Key, e.Sequence, e.Sequence) {
			v.add("I2 event %s (%s, key %s, sequence %d) never arrived", id, e.Action, e.Key, e.Sequence)
		}
	}
}

// Summary returns one line for a test log.
func (r Run) Summary() string {
	var b strings.Builder
	acked := 0
	for _, n := range r.Acked {
		acked += n
	}
	fmt.Fprintf(&b, "%d changes acknowledged, %d aggregates, %d events, %d messages", acked, len(r.Aggregates), len(r.Events), len(r.Messages))
	return b.String()
}
