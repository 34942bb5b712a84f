package jsontext

import (
	"encoding/json"
	"testing"
)

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
