package operations

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"feedbox/application/relay"
	"feedbox/infrastructure/operator"
)

// parkedView is a page of the parked keys, and why they are.
type parkedView struct {
	At           time.Time
	Trouble      string
	Reasons      []operator.Reason
	Reason, Find string
	Keys         []gateRow
	Page         pageOf
	Total        int
	Events       int64
}

type gateRow struct {
	relay.Gate
	State, Words string
	Error        string
}

func newGateRow(g relay.Gate) gateRow {
	row := gateRow{Gate: g, Error: g.Error}
	if row.Error == "" {
		row.Error = g.Closing.Error
	}
	row.State, row.Words = gateState(g)
	return row
}

// gateState says in a word or two what happens to a key.
func gateState(g relay.Gate) (state, words string) {
	switch {
	case g.Intent != nil:
		return "busy", string(g.Intent.Verb) + " wanted"
	case g.Closing.Auto:
		return "busy", "tried by itself"
	case g.Error != "":
		return "bad", "refused again"
	}
	return "warn", "waits for you"
}

func (s *Operations) parked(r *http.Request) (any, error) {
	p := s.reader.Look(r.Context())
	q := r.URL.Query()
	v := parkedView{At: p.GatesAt, Trouble: p.GatesErr, Reasons: p.Reasons, Reason: q.Get("reason"), Find: strings.TrimSpace(q.Get("find")), Total: len(p.Gates)}
	var found []relay.Gate
	for _, g := range p.Gates {
		v.Events += g.Events
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

// keyView is a parked key with its line.
type keyView struct {
	gateRow
	Line    []lineEvent
	Skipped []skippedEvent
	More    int64 // that wait behind what is shown
	Limit   int
	Next    int // the limit that shows more
}

type lineEvent struct {
	relay.ParkedEvent
	Place    int
	Refused  bool // it is why the others wait
	Document string
	Cut      bool
}

type skippedEvent struct {
	Event  lineEvent
	Intent relay.Intent
}

const (
	lineFirst = 20
	lineMost  = 500
	// maxDocument is how much of a document is shown, in bytes.
	maxDocument = 16 << 10
)

func (s *Operations) key(r *http.Request) (any, error) {
	limit, err := strconv.Atoi(r.URL.Query().Get("events"))
	if err != nil || limit < 1 || limit > lineMost {
		limit = lineFirst
	}
	key := r.PathValue("key")
	return s.keys.get(strconv.Itoa(limit)+" "+key, func() (keyView, error) {
		found, err := s.o.Port.ParkedKey(r.Context(), key, limit)
		if err != nil {
			return keyView{}, notParked(key, err)
		}
		v := keyView{gateRow: newGateRow(found.Gate), Limit: limit, More: max(0, found.Gate.Events-int64(len(found.Line))), Next: min(lineMost, 5*limit)}
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
	document, truncated := pretty(e.Document)
	return lineEvent{ParkedEvent: e, Place: place, Refused: e.Attempts > 0, Document: document, Cut: truncated}
}

// pretty indents a document, if it is JSON, and cuts it.
func pretty(document []byte) (text string, truncated bool) {
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
