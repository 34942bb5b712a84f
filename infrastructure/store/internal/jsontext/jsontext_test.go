package jsontext

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
)

// Any text is written as encoding/json writes it.
func FuzzJSONWriter(f *testing.F) {
	for _, text := range []string{"", "plain", `"\/`, "<J&hn>", "Ωmega", "\u2028", "\x00\x1f\x7f", "\xff", "a\nb"} {
		f.Add(text, int64(1632308857), true)
	}
	f.Fuzz(func(t *testing.T, text string, n int64, yes bool) {
		at := time.Unix(n, n&0x3fffffff)
		id := uuid.NewMD5(uuid.Nil, []byte(text))
		w := NewWriter(0)
		w.Object(func() {
			w.Text("text", text)
			w.TextIfAny("any", text)
			w.TextOrNull("null", text)
			w.Member("object")
			w.Object(func() { w.Integer("integer", n) })
			w.Boolean("boolean", yes)
			w.UUID("id", id)
			w.Time("time", at)
			w.TimeIfAny("none", time.Time{})
		})
		raw, err := w.Done()
		type object struct {
			Integer int64 `json:"integer"`
		}
		var orNull *string
		if text != "" {
			orNull = &text
		}
		want, wantErr := json.Marshal(struct {
			Text    string    `json:"text"`
			Any     string    `json:"any,omitempty"`
			Null    *string   `json:"null"`
			Object  object    `json:"object"`
			Boolean bool      `json:"boolean"`
			ID      uuid.UUID `json:"id"`
			Time    time.Time `json:"time"`
			None    time.Time `json:"none,omitzero"`
		}{text, text, orNull, object{n}, yes, id, at, time.Time{}})
		if (err != nil) != (wantErr != nil) {
			t.Fatalf("error %v; encoding/json has %v", err, wantErr)
		}
		if err == nil && string(raw) != string(want) {
			t.Errorf("wrote %s\nencoding/json writes %s", raw, want)
		}
	})
}

func TestScannerTextMatchesEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, quoted := range []string{`""`, `"a"`, `"\"0000\""`, `"a\/b\\"`, `"\\\\"`, `"\u00e9"`, `"a\nb"`, `"\"\n"`} {
		var want string
		if err := json.Unmarshal([]byte(quoted), &want); err != nil {
			t.Fatal(err)
		}
		s := NewScanner([]byte(quoted))
		if got, ok, err := s.Text(); got != want || !ok || err != nil || s.pos != len(quoted) {
			t.Errorf("%s: %q, %t, %v; want %q", quoted, got, ok, err, want)
		}
	}
}
