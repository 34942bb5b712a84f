package cosmosemu

import (
	"encoding/base64"
	"encoding/json"
	"hash/fnv"
	"net/http"

	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
)

// continuation is the start of the next page of a query: the position of the last row. The
// position consists of the sort key, the document number and, with JOIN, the number of the
// row within the document. It stays valid when rows are inserted or deleted.
type continuation struct {
	Document uint64          `json:"d"`
	Row      int64           `json:"r,omitempty"` // rows of the document that were served, if it has more
	Skipped  int64           `json:"s,omitempty"` // rows skipped for OFFSET
	Emitted  int64           `json:"e,omitempty"` // rows served, for TOP and LIMIT
	Key      json.RawMessage `json:"k,omitempty"` // of ORDER BY
	Backward bool            `json:"b,omitempty"` // the next page ends before the document
	Mark     uint32          `json:"m"`           // of the container and query

	key query.SortKey
}

// mark binds a token to the container and to the query without its WHERE. WHERE is left out
// because an SDK that resumes a query plan sends the token with another condition, and a
// position in the order of rows is valid under any condition (see query.Query.Frame).
func mark(containerRID string, b *query.Bound) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(containerRID)) // a hash never fails
	if b != nil {
		_, _ = h.Write([]byte(b.Query().Frame()))
	}
	return h.Sum32()
}

// text encodes the token as base64url of JSON, which is short and valid in a header.
func (t *continuation) text(containerRID string, b *query.Bound) string {
	t.Mark = mark(containerRID, b)
	if t.key != nil {
		t.Key = t.key.AppendJSON(nil)
	}
	out, err := json.Marshal(t)
	if err != nil {
		panic("cosmosemu: a sort key is not JSON: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(out)
}

// parseContinuation reads a token; nil for the first page. A token of another query is
// refused, because it would give wrong rows.
func parseContinuation(text, containerRID string, b *query.Bound, backward bool) (*continuation, error) {
	if text == "" {
		return nil, nil
	}
	bad := refuse(http.StatusBadRequest, "The continuation token is not one of this query on this container")
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, bad
	}
	var t continuation
	if err := json.Unmarshal(raw, &t); err != nil || t.Mark != mark(containerRID, b) || t.Skipped < 0 || t.Emitted < 0 || t.Row < 0 || t.Backward != backward {
		return nil, bad
	}
	if b != nil && b.Query().Shape().OrderBy {
		if t.key, err = b.ParseSortKey(t.Key); err != nil {
			return nil, bad
		}
	}
	return &t, nil
}
