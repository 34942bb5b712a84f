package operations

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/page"
)

// life is what is known of one aggregate.
type life struct {
	Key     string
	Events  []lived
	Trouble string
	Missing []int64
	Parked  *keyView
	Version int64
	Witness bool
	Cut     int // events before those that are shown
	At      time.Time
}

// lived is an event on its way.
type lived struct {
	Sequence, Version int64
	ID, Action        string
	Trace             string
	State, Words      string
	CreatedAt         time.Time
	CommittedAt       time.Time
	Accepted          time.Time
	Received          time.Time
	Took              time.Duration // from creation to reception, or acceptance
	Document          string
}

// maxLived is how many events of a key are shown, the last ones.
const maxLived = 200

// find leads to a key.
func (s *Operations) find(r *http.Request) (any, error) {
	if key := strings.TrimSpace(r.URL.Query().Get("key")); key != "" {
		return nil, &page.Moved{To: "/life/" + url.PathEscape(key)}
	}
	return nil, nil
}

func (s *Operations) life(r *http.Request) (any, error) {
	key := r.PathValue("key")
	handled := s.reader.Look(r.Context()).Standing.Handled()
	return s.lives.get(key, func() (life, error) {
		found, err := s.o.Port.Life(r.Context(), key, handled)
		if err != nil {
			return life{}, err
		}
		v := life{Key: key, Trouble: found.Trouble, Missing: found.Missing, Witness: s.o.Witness != nil, At: time.Now()}
		var seen map[string]Seen
		if s.o.Witness != nil {
			seen = s.o.Witness.Seen(key)
		}
		if found.Parked != nil {
			parked := keyView{gateRow: newGateRow(found.Parked.Gate)}
			for i, e := range found.Parked.Line {
				parked.Line = append(parked.Line, newLineEvent(e, i+1))
			}
			v.Parked = &parked
		}
		v.Cut = max(0, len(found.Events)-maxLived)
		for _, e := range found.Events[v.Cut:] {
			v.Events = append(v.Events, newLived(e, seen[e.ID]))
			v.Version = max(v.Version, e.AggregateVersion)
		}
		return v, nil
	})
}

func newLived(e operator.Lived, seen Seen) lived {
	l := lived{
		Sequence: e.Sequence, Version: e.AggregateVersion, ID: e.ID, Action: e.Action, Trace: traceID(e.Traceparent),
		CommittedAt: e.CommittedAt, Accepted: seen.Accepted, Received: seen.Received,
	}
	l.CreatedAt, _ = time.Parse(time.RFC3339Nano, e.CreatedAt) // zero if it is not told
	l.Document, _ = pretty(e.Body)
	fate := e.Fate
	if fate == operator.FateWaiting && !seen.Received.IsZero() {
		fate = operator.FateAccepted
	}
	l.State, l.Words = fateState(fate)
	if !seen.Received.IsZero() {
		l.Words = "received"
		if !l.CreatedAt.IsZero() {
			l.Took = seen.Received.Sub(l.CreatedAt)
		}
	}
	return l
}

func fateState(f operator.Fate) (state, words string) {
	switch f {
	case operator.FateAccepted:
		return "good", "accepted"
	case operator.FateParked:
		return "bad", "refused"
	case operator.FateHeld:
		return "warn", "held behind it"
	case operator.FateSkipped:
		return "", "left out"
	case operator.FateWaiting:
	}
	return "busy", "on its way"
}

// traceID is the middle of a W3C trace context.
func traceID(traceparent string) string {
	parts := strings.Split(traceparent, "-")
	if len(parts) < 4 {
		return ""
	}
	return parts[1]
}
