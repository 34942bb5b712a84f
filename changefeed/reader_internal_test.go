package changefeed

import "testing"

func TestTermsOfDifferentRangesAreNotCompared(t *testing.T) {
	for _, tt := range []struct {
		before, now string
		want        bool
	}{
		{"", "0:1", false},
		{"0:1", "", false},
		{"0:1", "0:1", false},
		{"0:1", "0:2", true},
		{"0:1", "1:2", false},
		{"0:1", "10:1", false},
	} {
		if got := termChanged(tt.before, tt.now); got != tt.want {
			t.Errorf("%q after %q: changed %t", tt.now, tt.before, got)
		}
	}
}
