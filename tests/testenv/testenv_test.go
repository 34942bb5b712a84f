package testenv

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// refusal stands for a test and keeps why it was ended.
type refusal struct {
	testing.TB
	text string
}

func (r *refusal) Helper() {}

func (r *refusal) Fatalf(format string, args ...any) { r.text = fmt.Sprintf(format, args...) }

func TestValues(t *testing.T) {
	const name = "FEEDBOX_TEST_FULL"
	count := func(t testing.TB) any { return Count(t, name, 7) }
	seed := func(t testing.TB) any { return Seed(t, name, 7) }
	share := func(t testing.TB) any { return Share(t, name, 0.5) }
	full := func(t testing.TB) any { return Sample(t, 1, 2) }
	duration := func(t testing.TB) any { return Duration(t, name, time.Minute) }
	for _, c := range []struct {
		read func(testing.TB) any
		text string
		want any // nil: refused
	}{
		{full, "", 1},
		{full, "no", 1},
		{full, "yes", 2},
		{full, "1", nil},
		{count, "", 7},
		{count, "1", 1},
		{count, "1000", 1000},
		{count, "0", nil},
		{count, "-1", nil},
		{count, "many", nil},
		{count, "1e3", nil},
		{count, "60 ", nil},
		{seed, "", uint64(7)},
		{seed, "0", uint64(0)},
		{seed, "18446744073709551615", uint64(1<<64 - 1)},
		{seed, "-1", nil},
		{seed, "x", nil},
		{seed, "18446744073709551616", nil},
		{share, "", 0.5},
		{share, "1", 1.0},
		{share, "0.05", 0.05},
		{share, "0", nil},
		{share, "1.1", nil},
		{share, "NaN", nil},
		{share, "5%", nil},
		{duration, "", time.Minute},
		{duration, "0", time.Duration(0)},
		{duration, "90s", 90 * time.Second},
		{duration, "90", nil},
		{duration, "-1s", nil},
	} {
		t.Setenv(name, c.text)
		r := &refusal{TB: t}
		got := c.read(r)
		switch {
		case c.want == nil && (!strings.HasPrefix(r.text, fmt.Sprintf("%s=%q: ", name, c.text)) || !strings.HasSuffix(r.text, " is needed")):
			t.Errorf("%q gives %v, and the words %q", c.text, got, r.text)
		case c.want != nil && (got != c.want || r.text != ""):
			t.Errorf("%q gives %v and the words %q, want %v", c.text, got, r.text, c.want)
		}
	}
}
