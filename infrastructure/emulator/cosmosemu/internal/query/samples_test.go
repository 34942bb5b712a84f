package query

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// documented is a documented query with its result. Source: the samples of the query reference on
// Microsoft Learn (github.com/Azure-Samples/cosmos-db-nosql-query-samples, MIT licence).
type documented struct {
	Name    string            `json:"name"`
	Query   string            `json:"query"`
	Items   []json.RawMessage `json:"items"`
	Rows    []any             `json:"rows"`
	Ordered bool              `json:"ordered"`
	Varies  []string          `json:"varies"`  // members that depend on the clock or on chance: only their types are documented
	Refused string            `json:"refused"` // the construct that the refusal names
}

// minDocumented is the number of samples that must have their documented result.
const minDocumented = 134

func TestDocumentedSamplesHaveTheirResults(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "samples.json"))
	if err != nil {
		t.Fatal(err)
	}
	var samples []documented
	if err := json.Unmarshal(text, &samples); err != nil {
		t.Fatal(err)
	}
	good, refused := 0, 0
	for _, s := range samples {
		got, err := s.run()
		var unsupported *UnsupportedError
		switch {
		case errors.As(err, &unsupported) && s.Refused != "" && strings.Contains(unsupported.Construct, s.Refused):
			refused++
		case err != nil || s.Refused != "":
			t.Errorf("%s: %v, want refused %q", s.Name, err, s.Refused)
		case !alike(got, s.expected()):
			t.Errorf("%s: %s\n got %v\nwant %v", s.Name, s.Query, got, s.expected())
		default:
			good++
		}
	}
	t.Logf("of %d samples %d have the documented result, %d are refused by name", len(samples), good, refused)
	if good < minDocumented {
		t.Errorf("%d samples have the documented result, want at least %d", good, minDocumented)
	}
}

func (s *documented) run() ([]any, error) {
	q, err := Parse(s.Query)
	if err != nil {
		return nil, err
	}
	b, err := q.BindIn(nil, Setting{Now: time.Unix(1700000000, 0), Random: func() float64 { return 0.25 }})
	if err != nil {
		return nil, err
	}
	var docs []string
	for _, item := range s.Items {
		docs = append(docs, string(item))
	}
	rows := results(b, docs)
	if w := b.Window(); w.Limit >= 0 {
		rows = rows[min(w.Offset, int64(len(rows))):]
		rows = rows[:min(w.Limit, int64(len(rows)))]
	}
	var parsed []any
	for _, row := range rows {
		var v any
		if err := json.Unmarshal([]byte(row), &v); err != nil {
			return nil, err
		}
		parsed = append(parsed, v)
	}
	return s.comparable(parsed), nil
}

func (s *documented) expected() []any { return s.comparable(s.Rows) }

// comparable hides the members that vary, and sorts rows without a documented order.
func (s *documented) comparable(rows []any) []any {
	for _, row := range rows {
		for _, name := range s.Varies {
			o := row.(map[string]any)
			if o[name] != nil {
				o[name] = reflect.TypeOf(o[name]).String()
			}
		}
	}
	if !s.Ordered {
		slices.SortFunc(rows, func(x, y any) int { return strings.Compare(asText(x), asText(y)) })
	}
	return rows
}

func asText(v any) string {
	text, _ := json.Marshal(v) // it was JSON
	return string(text)
}

// alike compares two values. The last digits of a number depend on the library of functions.
func alike(x, y any) bool {
	switch x := x.(type) {
	case float64:
		y, ok := y.(float64)
		return ok && math.Abs(x-y) <= 1e-14*math.Abs(y)
	case []any:
		y, ok := y.([]any)
		return ok && slices.EqualFunc(x, y, alike)
	case map[string]any:
		y, ok := y.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for name := range x {
			if _, has := y[name]; !has || !alike(x[name], y[name]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(x, y)
}
