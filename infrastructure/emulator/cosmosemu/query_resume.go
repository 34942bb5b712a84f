package cosmosemu

import (
	"encoding/json"
	"math"
	"net/http"

	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// resumeFilter is the position at which the .NET SDK resumes an ordered query over several
// ranges: a sort key, plus a row in the range of the last row. It is a member of the request
// body, next to the query.
type resumeFilter struct {
	Value   []json.RawMessage `json:"value"`
	RID     string            `json:"rid"`     // of a document; "" means all documents of that key
	Exclude bool              `json:"exclude"` // the named rows have been read
}

// parseResumeFilter reads the position after which the request resumes; nil if there is
// none.
func parseResumeFilter(body []byte, b *query.Bound) (*sortedRow, error) {
	if b == nil {
		return nil, nil
	}
	var in struct {
		Filter *resumeFilter `json:"resumeFilter"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, refuse(http.StatusBadRequest, "The resumeFilter is invalid: %v", err)
	}
	f := in.Filter
	if f == nil {
		return nil, nil
	}
	if !b.Query().Shape().OrderBy {
		return nil, refuse(http.StatusBadRequest, "A resumeFilter is for a query with ORDER BY")
	}
	values := make([][]json.RawMessage, 0, len(f.Value))
	for _, v := range f.Value {
		switch {
		case string(v) == "[]": // undefined
			values = append(values, []json.RawMessage{})
		case v[0] == '{' || v[0] == '[':
			return nil, refuse(http.StatusBadRequest, "The resumeFilter value %s is not supported: only strings, numbers, booleans, null and undefined", v)
		default:
			values = append(values, []json.RawMessage{v})
		}
	}
	text, err := json.Marshal(values)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "The resumeFilter is invalid: %v", err)
	}
	key, err := b.ParseSortKey(text)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "The resumeFilter value %s does not fit the ORDER BY: %v", text, err)
	}
	row := &sortedRow{key: key, number: math.MaxInt64} // after all rows of its document
	if f.RID == "" {
		// The position is after all rows of the key, or before them. Rows of one key are in
		// the order of documents, or in reverse if the query is descending.
		if f.Exclude != b.Descending() {
			row.document = math.MaxUint64
		}
		return row, nil
	}
	number, ok := store.DocumentNumber(f.RID)
	if !ok {
		return nil, refuse(http.StatusBadRequest, "The resumeFilter names %q, which is not the resource id of a document", f.RID)
	}
	switch row.document = number; {
	case f.Exclude:
	case b.Descending():
		row.document++
	default:
		row.document--
	}
	return row, nil
}
