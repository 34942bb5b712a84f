package isoduration

import (
	"testing"
	"time"

	"feedbox/tests/fuzzseed"
)

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"PT45S": 45 * time.Second, "PT1M": time.Minute, "PT6H": 6 * time.Hour, "P14D": 14 * 24 * time.Hour,
		"P1DT2H3M4.5S": 26*time.Hour + 3*time.Minute + 4500*time.Millisecond, "PT0S": 0, MaxTimeSpan: Forever,
	} {
		got, err := Parse(text)
		if err != nil || got != want {
			t.Errorf("parse %s: %v, %v", text, got, err)
		}
		if back := Format(want); back != text {
			t.Errorf("format %v: %s, want %s", want, back, text)
		}
	}
	for _, bad := range []string{"", "P", "PT", "1M", "P1Y", "PT1", "PT-1S", "P1DT", "PTxS"} {
		if d, err := Parse(bad); err == nil {
			t.Errorf("%q parsed as %v", bad, d)
		}
	}
}

func FuzzParse(f *testing.F) {
	fuzzseed.Add(f)
	for _, s := range []string{"PT1M", MaxTimeSpan, "P1DT2H3M4.5S", "P999999999999999999D"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := Parse(s)
		if err != nil {
			return
		}
		if d < 0 {
			t.Fatalf("%q is %v", s, d)
		}
		if back, err := Parse(Format(d)); err != nil || (back-d).Abs() > time.Millisecond && d < 1000*time.Hour {
			t.Fatalf("%q is %v, then %v (%v)", s, d, back, err)
		}
	})
}
