package cosmosfeed

import (
	"errors"
	"slices"
	"testing"

	"feedbox/changefeed"
)

// A list with several ranges there, or none, is from another time.
func TestReplyMatchesOneListedRange(t *testing.T) {
	asked, outside := changefeed.FeedRange{Min: "10", Max: "20"}, changefeed.FeedRange{Min: "30", Max: "FF"}
	lower, upper := changefeed.FeedRange{Min: "", Max: "18"}, changefeed.FeedRange{Min: "18", Max: "30"}
	whole := changefeed.FeedRange{Min: "", Max: "30"}
	for _, c := range []struct {
		listed []changefeed.FeedRange
		want   seenRange
	}{
		{[]changefeed.FeedRange{whole, outside}, seenRange{id: "7", bounds: whole}},
		{[]changefeed.FeedRange{lower, upper, outside}, seenRange{}},
		{[]changefeed.FeedRange{outside}, seenRange{}},
	} {
		if got := matchRange("7", asked, slices.Clone(c.listed)); got != c.want {
			t.Errorf("listed %v: %+v, want %+v", c.listed, got, c.want)
		}
	}
}

// A reply must name its physical range, unless the lease is the full key space.
func TestReplyWithoutRangeIDIsRefused(t *testing.T) {
	part := &feedRead{Feed: &Feed{}, about: &about{}, req: changefeed.ReadRequest{Range: changefeed.FeedRange{Min: "10", Max: "20"}}}
	if _, err := part.physicalRange(); !errors.Is(err, errRangeUnnamed) {
		t.Errorf("a part: error %v", err)
	}
	part.source = "7"
	if _, err := part.physicalRange(); !errors.Is(err, errRangesChanged) {
		t.Errorf("a range that was never listed: error %v", err)
	}
	part.seen = seenRange{id: "7", bounds: changefeed.FeedRange{Min: "", Max: "30"}}
	if got, err := part.physicalRange(); err != nil || got != part.seen.bounds {
		t.Errorf("a range that replied again: %s, %v", got, err)
	}
	whole := &feedRead{Feed: &Feed{}, about: &about{}, req: changefeed.ReadRequest{Range: changefeed.FullRange()}}
	if got, err := whole.physicalRange(); err != nil || got != changefeed.FullRange() {
		t.Errorf("all there is: %s, %v", got, err)
	}
}
