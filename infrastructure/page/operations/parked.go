package operations

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/page"
)

// parkedView is a page of the parked keys, with a summary by reason.
type parkedView struct {
	Consumer     string // whose keys these are; "" for the relay's
	Read         Source
	Reasons      []operator.Reason
	Reason, Find string
	Keys         []gateRow
	Page         pageOf
	Total        int

	Consumers     []consumerRow // with parked keys; only with the keys of the relay
	ConsumersRead Source
}

// consumerRow is a summary of the parked keys of a consumer.
type consumerRow struct {
	Name    string
	Keys    int
	Events  int64
	Oldest  time.Time
	Reasons []operator.Reason
}

type gateRow struct {
	relay.Gate
	State, Words string
	Error        string
}

func newGateRow(g relay.Gate) gateRow {
	state, words := gateState(g)
	return gateRow{Gate: g, State: state, Words: words, Error: cmp.Or(g.Error, g.Closing.Error)}
}

func gateState(g relay.Gate) (state, words string) {
	switch {
	case g.Intent != nil:
		return "busy", string(g.Intent.Verb) + " requested"
	case g.Closing.Auto:
		return "busy", "retried automatically"
	case g.Error != "":
		return "bad", "refused again"
	}
	return "warn", "needs an operator"
}

func (s *Operations) parked(r *http.Request) (any, error) {
	p := s.reader.Latest(r.Context())
	q := r.URL.Query()
	v := parkedView{Consumer: q.Get("consumer"), Read: p.Keys, Reasons: p.Reasons, Reason: q.Get("reason"), Find: strings.TrimSpace(q.Get("find"))}
	gates := p.Gates
	if v.Consumer == "" {
		v.Consumers, v.ConsumersRead = consumerRows(p.Consumers), p.ConsumersRead
	} else {
		v.Read, gates = p.ConsumersRead, nil
		if i := slices.IndexFunc(p.Consumers, func(c operator.ConsumerKeys) bool { return c.Consumer == v.Consumer }); i >= 0 {
			gates = p.Consumers[i].Gates
		}
		v.Reasons = operator.Reasons(gates)
	}
	v.Total = len(gates)
	var found []relay.Gate
	for _, g := range gates {
		if v.Reason != "" && g.Closing.Reason != v.Reason || v.Find != "" && !strings.HasPrefix(g.Key, v.Find) {
			continue
		}
		found = append(found, g)
	}
	from, to := paged(q, len(found), r.URL.Path, &v.Page)
	for _, g := range found[from:to] {
		v.Keys = append(v.Keys, newGateRow(g))
	}
	return v, nil
}

func consumerRows(consumers []operator.ConsumerKeys) (rows []consumerRow) {
	for _, c := range consumers {
		row := consumerRow{Name: c.Consumer, Keys: len(c.Gates), Oldest: c.Gates[0].Closing.At, Reasons: operator.Reasons(c.Gates)} // the oldest is first
		for _, r := range row.Reasons {
			row.Events += r.Events
		}
		rows = append(rows, row)
	}
	return rows
}

// portOf returns the port to the parked keys that a query means: those of the relay, or of a consumer.
func (s *Operations) portOf(q url.Values) (Port, error) {
	if name := q.Get("consumer"); name != "" {
		return s.o.Port.Consumer(name)
	}
	return s.o.Port, nil
}

// handles returns the subject and the verb of a sentence about parked events.
func handles(q url.Values) string {
	if name := q.Get("consumer"); name != "" {
		return "Consumer " + name + " handles"
	}
	return "A relay sends"
}

type keyView struct {
	gateRow
	Consumer string // "" for a key of the relay
	Line     []lineEvent
	Skipped  []skippedEvent
	More     int64 // events held after those in Line
	Limit    int
	Next     int // a higher limit
}

type lineEvent struct {
	relay.ParkedEvent
	Place    int
	Refused  bool // refused by the broker; later events wait for it
	Document string
	Cut      bool
}

type skippedEvent struct {
	Event  lineEvent
	Intent relay.Intent
}

const (
	lineDefault = 20
	lineMax     = 500
	// maxDocument bounds the bytes shown of a document.
	maxDocument = 16 << 10
)

func (s *Operations) key(r *http.Request) (any, error) {
	limit, err := strconv.Atoi(r.URL.Query().Get("events"))
	if err != nil || limit < 1 || limit > lineMax {
		limit = lineDefault
	}
	key, err := page.KeyOf(r)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	port, err := s.portOf(q)
	if err != nil {
		return nil, err
	}
	return s.keys.get(strconv.Itoa(limit)+" "+q.Get("consumer")+"/"+key, func() (keyView, error) { // no name has a slash
		found, err := port.ParkedKey(r.Context(), key, limit)
		if err != nil {
			return keyView{}, notParkedRefusal(key, err)
		}
		v := newKeyView(&found)
		v.Consumer, v.Limit, v.More, v.Next = q.Get("consumer"), limit, max(0, found.Gate.Events-int64(len(found.Line))), min(lineMax, 5*limit)
		return v, nil
	})
}

func newKeyView(found *operator.ParkedKey) keyView {
	v := keyView{gateRow: newGateRow(found.Gate)}
	for i, e := range found.Line {
		v.Line = append(v.Line, newLineEvent(e, i+1))
	}
	for _, one := range found.Skipped {
		v.Skipped = append(v.Skipped, skippedEvent{newLineEvent(one.Event, 0), one.Intent})
	}
	return v
}

// Sent returns the sequence of the last event that was sent; 0 if it is not known. Progress of the
// gate is of no use here, because it is the place of the last parked event.
func (v keyView) Sent() int64 {
	if len(v.Line) == 0 || len(v.Skipped) > 0 { // an event before Line may have been skipped
		return 0
	}
	return max(0, v.Line[0].Sequence-1)
}

func newLineEvent(e relay.ParkedEvent, place int) lineEvent {
	document, truncated := indented(e.Document)
	return lineEvent{ParkedEvent: e, Place: place, Refused: e.Attempts > 0, Document: document, Cut: truncated}
}

// indented indents a JSON document and truncates it. Other text is only truncated.
func indented(document []byte) (text string, truncated bool) {
	var out bytes.Buffer
	if json.Indent(&out, document, "", "  ") != nil {
		out.Reset()
		out.Write(document)
	}
	if out.Len() <= maxDocument {
		return out.String(), false
	}
	end := maxDocument
	for !utf8.RuneStart(out.Bytes()[end]) {
		end--
	}
	return out.String()[:end], true
}

func (s *Operations) previewEdit(ctx context.Context, q url.Values) (*page.Preview, error) {
	key, event := q.Get("key"), q.Get("event")
	port, err := s.portOf(q)
	if err != nil {
		return nil, err
	}
	g, err := port.Gate(ctx, key)
	if err != nil {
		return nil, notParkedRefusal(key, err)
	}
	m, err := port.ReadEditable(ctx, key, event)
	if fault.Is(err, fault.NotFound) {
		return nil, &page.Refusal{Status: http.StatusNotFound, Title: "The event is no longer stored", Detail: "It has expired, or was removed. The parked event can only be sent unchanged, or skipped.", Next: "Go back to the key."}
	}
	if err != nil {
		return nil, err
	}
	p := &page.Preview{
		Summary: fmt.Sprintf("The document replaces the stored one. %s the %d waiting events in order after that.", handles(q), g.Events),
		Facts:   keyFacts(q, page.Fact{Name: "event", Value: event}),
		Stamp:   m.Version, Warning: m.Trouble,
	}
	text := q.Get("document")
	if text == "" {
		var cut bool
		if text, cut = indented(m.Document); cut {
			p.Blocked = "The document is too large for this form: use feedbox parked edit."
		}
	} else if trouble := port.CheckEdit(key, event, []byte(text)); trouble != "" {
		return nil, &page.Refusal{Status: http.StatusUnprocessableEntity, Title: "The corrected document cannot be sent", Detail: trouble + ". Nothing was stored.", Next: "Go back and correct it; your input is still there."}
	} else {
		p.Warning = ""
	}
	p.Fields = []page.Field{{Name: "document", Label: "The event's document", Kind: "area", Value: text, Required: true, Hint: "Must be JSON. Keep the id and key."}}
	return p, nil
}

func (s *Operations) doEdit(ctx context.Context, o *page.Order) error {
	key, event := o.Values.Get("key"), o.Values.Get("event")
	port, err := s.portOf(o.Values)
	if err != nil {
		return err
	}
	document := []byte(o.Values.Get("document"))
	if o.Values.Get("consumer") != "" {
		gate, err := port.ReplaceParked(ctx, key, event, document, o.Stamp, relay.Intent{Verb: relay.VerbRetry, By: o.Who, Note: o.Why})
		if err != nil {
			return err
		}
		o.Say("The corrected document is stored.")
		return s.await(ctx, port, o, gate, relay.VerbRetry)
	}
	if err := s.o.Port.ReplaceEvent(ctx, key, event, document, o.Stamp); err != nil {
		return err
	}
	o.Say("The corrected document is stored.")
	return s.noteAndWait(ctx, port, o, key, relay.Intent{Verb: relay.VerbRetry, By: o.Who, Note: o.Why, FromStore: true})
}
