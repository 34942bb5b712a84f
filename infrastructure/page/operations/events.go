package operations

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"feedbox/domain/fault"
	"feedbox/infrastructure/operator"
)

// eventsView is a page of the stored events, the newest first.
type eventsView struct {
	Filter   map[string]string // by the name of its field
	States   []operator.Status
	Wrong    string // reason for which the filter cannot be used
	Rows     []eventRow
	Examined int
	Back     time.Time
	Omitted  []string
	Cut      []string
	Older    string // address of the next page, "" = none
	Newest   string // address of the first page
	Filtered bool
	Later    bool // this is not the first page
}

type eventRow struct {
	operator.ListedEvent
	At           time.Time
	State, Words string
}

// filterFields are the names in the query of the view.
var filterFields = []string{"key", "id", "action", "state", "from", "until"}

// events does not read again by itself, because a page may cost hundreds of reads.
func (s *Operations) events(r *http.Request) (any, error) {
	q := r.URL.Query()
	v := eventsView{States: operator.States(), Filter: map[string]string{}, Later: q.Get("after") != ""}
	for _, name := range filterFields {
		v.Filter[name] = strings.TrimSpace(q.Get(name))
		v.Filtered = v.Filtered || v.Filter[name] != ""
	}
	v.Newest = r.URL.Path + "?" + query(v.Filter, "")
	f := operator.EventFilter{
		Key: v.Filter["key"], ID: v.Filter["id"], Action: v.Filter["action"], State: operator.Status(v.Filter["state"]), Limit: pageSize, Continuation: q.Get("after"), Management: s.o.Management,
	}
	var ok1, ok2 bool
	f.From, ok1 = parseTime(v.Filter["from"], time.Now())
	f.Until, ok2 = parseTime(v.Filter["until"], time.Now())
	if !ok1 || !ok2 {
		v.Wrong = "A time is an age such as 2h, or a time such as 2026-11-27 16:58 in UTC."
		return v, nil
	}
	found, err := s.o.Port.Events(r.Context(), s.reader.Latest(r.Context()).Snapshot, f)
	if fault.Is(err, fault.Invalid) {
		v.Wrong = err.Error()
		return v, nil
	}
	if err != nil {
		return nil, err
	}
	v.Examined, v.Back, v.Omitted, v.Cut = found.Examined, found.Back, found.Omitted, found.Cut
	if found.Continuation != "" {
		v.Older = r.URL.Path + "?" + query(v.Filter, found.Continuation)
	}
	for _, e := range found.Events {
		row := eventRow{ListedEvent: e, At: e.At()}
		row.State, row.Words = statusState(e.Status)
		row.Trouble = shortened(row.Trouble)
		v.Rows = append(v.Rows, row)
	}
	return v, nil
}

func query(filter map[string]string, after string) string {
	values := url.Values{}
	for name, value := range filter {
		if value != "" {
			values.Set(name, value)
		}
	}
	if after != "" {
		values.Set("after", after)
	}
	return values.Encode()
}

// timeForms are the forms of a time: those of this page, of a log, and shorter ones.
var timeForms = []string{time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"}

// parseTime parses a time, or an age before now; "" is no time.
func parseTime(text string, now time.Time) (t time.Time, ok bool) {
	if text == "" {
		return t, true
	}
	age, err := time.ParseDuration(strings.ReplaceAll(text, " ", ""))
	if err == nil {
		t = now.Add(-age)
	}
	for i := 0; err != nil && i < len(timeForms); i++ {
		t, err = time.Parse(timeForms[i], text)
	}
	return t, err == nil && age >= 0 && t.Year() > 1970 && t.Year() < 2200
}
