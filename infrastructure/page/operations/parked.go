package operations

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"feedbox/application/relay"
	"feedbox/infrastructure/operator"
)

// parkedView is a page of the parked keys, with a summary by reason.
type parkedView struct {
	At           time.Time
	Trouble      string
	Reasons      []operator.Reason
	Reason, Find string
	Keys         []gateRow
	Page         pageOf
	Total        int
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
	v := parkedView{At: p.GatesAt, Trouble: p.GatesErr, Reasons: p.Reasons, Reason: q.Get("reason"), Find: strings.TrimSpace(q.Get("find")), Total: len(p.Gates)}
	var found []relay.Gate
	for _, g := range p.Gates {
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

type keyView struct {
	gateRow
	Line    []lineEvent
	Skipped []skippedEvent
	More    int64 // events held after those in Line
	Limit   int
	Next    int // a higher limit
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
	key := r.PathValue("key")
	return s.keys.get(strconv.Itoa(limit)+" "+key, func() (keyView, error) {
		found, err := s.o.Port.ParkedKey(r.Context(), key, limit)
		if err != nil {
			return keyView{}, notParkedRefusal(key, err)
		}
		v := keyView{gateRow: newGateRow(found.Gate), Limit: limit, More: max(0, found.Gate.Events-int64(len(found.Line))), Next: min(lineMax, 5*limit)}
		for i, e := range found.Line {
			v.Line = append(v.Line, newLineEvent(e, i+1))
		}
		for _, one := range found.Skipped {
			v.Skipped = append(v.Skipped, skippedEvent{newLineEvent(one.Event, 0), one.Intent})
		}
		return v, nil
	})
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
