package operations

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/page"
)

// timeline shows the stored events of one aggregate.
type timeline struct {
	Key     string
	Events  []timelineEntry
	Trouble string
	Missing []int64
	Parked  *keyView
	Version int64
	Flows   bool // known and current
	Cut     int  // older events that are not shown
}

// timelineEntry is an event with its status and times.
type timelineEntry struct {
	Sequence, Version int64
	ID, Action        string
	Trace, TraceURL   string
	State, Words      string
	CreatedAt         time.Time
	Committed         string // the time or its bounds
	Accepted          time.Time
	Received          time.Time
	Took              time.Duration // from creation to reception
	Parts             []part        // of Took, or of the time until acceptance
	Document          string
}

// maxEntries bounds the events shown of a key; the latest are kept.
const maxEntries = 200

func (s *Operations) timeline(r *http.Request) (any, error) {
	key, err := page.KeyOf(r)
	if err != nil {
		return nil, err
	}
	p := s.reader.Latest(r.Context())
	return s.timelines.get(key, func() (timeline, error) {
		found, err := s.o.Port.Timeline(r.Context(), key, p.Snapshot)
		if err != nil {
			return timeline{}, err
		}
		v := timeline{Key: key, Trouble: found.Trouble, Missing: found.Missing}
		v.Flows = len(found.Events) > 0 && found.Parked == nil && found.Trouble == "" && p.Ranges.Current() && p.Snapshot.Unknown == 0 && !p.Paused
		var receipts map[string]Receipt
		if s.o.Receipts != nil {
			receipts = s.o.Receipts.OfKey(key)
		}
		if found.Parked != nil {
			parked := newKeyView(found.Parked)
			v.Parked = &parked
		}
		v.Cut = max(0, len(found.Events)-maxEntries)
		for _, e := range found.Events[v.Cut:] {
			entry := newTimelineEntry(e, receipts[e.ID])
			if entry.Trace != "" {
				entry.TraceURL = strings.ReplaceAll(s.o.TraceURL, "{traceId}", url.PathEscape(entry.Trace))
			}
			v.Events = append(v.Events, entry)
			v.Version = max(v.Version, e.AggregateVersion)
		}
		return v, nil
	})
}

func newTimelineEntry(e operator.Entry, receipt Receipt) timelineEntry {
	entry := timelineEntry{
		Sequence: e.Sequence, Version: e.AggregateVersion, ID: e.ID, Action: e.Action, Trace: traceID(e.Traceparent),
		Accepted: receipt.Accepted, Received: receipt.Received,
	}
	entry.CreatedAt, _ = time.Parse(time.RFC3339Nano, e.CreatedAt) // zero if the event has none
	entry.Committed = committed(&e, entry.CreatedAt, receipt.Accepted)
	entry.Parts = parts(&e, entry.CreatedAt, receipt)
	entry.Document, _ = indented(e.Body)
	entry.State, entry.Words = statusState(e.Status)
	if !receipt.Received.IsZero() {
		if e.Status == operator.StatusWaiting || e.Status == operator.StatusUnknown {
			entry.State, _ = statusState(operator.StatusSent)
		}
		entry.Words = "received"
		if !entry.CreatedAt.IsZero() {
			entry.Took = receipt.Received.Sub(entry.CreatedAt)
		}
	}
	return entry
}

// part is a segment of the bar of an event, in percent of its length.
type part struct {
	Words       string
	Took        time.Duration
	From, Width float64
}

// parts divides the time from creation to reception by the times that are known. The commit is at a
// time between bounds; if they are the creation and the acceptance, nothing divides that part. There is
// no bar if the clocks disagree, or if the acceptance is not known.
func parts(e *operator.Entry, created time.Time, receipt Receipt) (all []part) {
	if created.IsZero() || receipt.Accepted.IsZero() || e.CommittedAt.IsZero() {
		return nil
	}
	from, until := e.Committed(created, receipt.Accepted)
	at, end := created.Truncate(time.Millisecond), receipt.Accepted
	if !receipt.Received.IsZero() {
		end = receipt.Received
	}
	total := end.Sub(at)
	for _, next := range []struct {
		words string
		until time.Time
	}{{"before the commit", from}, {"commit, feed and send", slices.MinFunc([]time.Time{until, receipt.Accepted}, time.Time.Compare)}, {"feed and send", receipt.Accepted}, {"broker to consumer", end}} {
		took := next.until.Sub(at)
		if took < 0 || total <= 0 {
			return nil
		}
		if took > 0 {
			all = append(all, part{next.words, took, 100 * float64(total-end.Sub(at)) / float64(total), 100 * float64(took) / float64(total)})
		}
		at = next.until
	}
	return all
}

// committed formats the time of the commit with the precision of the other times. The store has
// whole seconds: without bounds, an event would seem to be committed before it was created.
func committed(e *operator.Entry, created, accepted time.Time) string {
	if e.CommittedAt.IsZero() {
		return "–"
	}
	from, until := e.Committed(created, accepted)
	text := from.UTC().Format("2006-01-02 15:04:05.000Z") + " to " + until.UTC().Format("15:04:05.000Z")
	if created.After(until) {
		text += ", by the clock of the store, which is behind that of the writer"
	}
	return text
}

func statusState(f operator.Status) (state, words string) {
	switch f {
	case operator.StatusSent:
		return "good", "sent"
	case operator.StatusParked:
		return "bad", "parked"
	case operator.StatusDead:
		return "bad", "dead letter"
	case operator.StatusHeld:
		return "warn", "held"
	case operator.StatusSkipped:
		return "", "skipped"
	case operator.StatusWaiting:
		return "busy", "waiting"
	case operator.StatusUnknown:
	}
	return "", "not known yet"
}

// traceID returns the second field of a W3C traceparent, "" if it is malformed.
func traceID(traceparent string) string {
	parts := strings.Split(traceparent, "-")
	if len(parts) < 4 {
		return ""
	}
	return parts[1]
}

// timelineActs returns the act that sends the events of a key again.
func (s *Operations) timelineActs() []page.Act {
	return []page.Act{{Path: "replay", Title: "Send the events of a key again", Verb: "Send them again", Preview: s.previewKeyReplay, Do: s.doKeyReplay}}
}

func (s *Operations) previewKeyReplay(ctx context.Context, q url.Values) (*page.Preview, error) {
	key := q.Get("key")
	plan, err := s.o.Port.PlanKeyReplay(ctx, key, s.o.Window)
	if err != nil {
		return nil, err
	}
	p := &page.Preview{
		Summary: fmt.Sprintf("This process sends the %d stored events of the key again, in order, with their original message ids.", plan.Events),
		Facts: []page.Fact{
			{Name: "key", Value: key},
			{Name: "events", Value: fmt.Sprint(plan.Events)},
			{Name: "dropped by the topic", Value: fmt.Sprintf("%d, committed within its duplicate window of %s", plan.Covered, s.o.Window)},
			{Name: "consumers may see twice", Value: fmt.Sprint(plan.Events - plan.Covered)},
		},
		Stamp: replayStamp(plan),
	}
	switch {
	case plan.Events == 0:
		p.Blocked = "The key has no stored events: there is no such aggregate, or they have expired."
	case len(plan.Missing) > 0:
		p.Blocked = fmt.Sprintf("The sequences %v are missing, so the events cannot be sent in order.", plan.Missing[:min(10, len(plan.Missing))])
	}
	return p, nil
}

// replayStamp identifies the events of a plan, so that a new event makes a preview stale.
func replayStamp(plan *operator.KeyReplay) string {
	if len(plan.Messages) == 0 {
		return ""
	}
	return fmt.Sprint(plan.Events, " ", slices.MaxFunc(plan.Messages, func(a, b relay.Message) int { return int(a.Sequence - b.Sequence) }).ID)
}

func (s *Operations) doKeyReplay(ctx context.Context, o *page.Order) error {
	key := o.Values.Get("key")
	plan, err := s.o.Port.PlanKeyReplay(ctx, key, s.o.Window)
	if err != nil {
		return err
	}
	total, done := int64(len(plan.Messages)), int64(0)
	if err := s.o.Port.SendKey(ctx, plan, func(n int) { done += int64(n); o.Progress(done, total) }); err != nil {
		return err
	}
	o.Say(fmt.Sprintf("Sent: %d events.", total))
	o.Next("See the timeline of the key", page.Keyed("/life", key))
	return nil
}
