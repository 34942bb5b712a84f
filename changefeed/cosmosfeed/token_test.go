package cosmosfeed

import (
	"errors"
	"slices"
	"testing"

	"feedbox/changefeed"
)

// A position is what the service gave, quotes included: anything else the SDK would take for
// no position, and the feed would begin anew.
func TestAPositionIsAQuotedETag(t *testing.T) {
	r := changefeed.FeedRange{Min: "10", Max: "20"}
	for position, ok := range map[string]bool{
		`"12"`: true, `""12""`: true, "": true, fromNow: true,
		`""`: false, `"`: false, `12`: false, `"12`: false, `12"`: false, `x"12"`: false, "**": false,
	} {
		text, err := encodeToken("rid", r, position)
		if (err == nil) != ok {
			t.Errorf("position %s: error %v", position, err)
		}
		if err != nil {
			continue
		}
		if got, err := decodeToken(text, r); err != nil || got != position {
			t.Errorf("position %s came back as %s, %v", position, got, err)
		}
	}
}

// An answer has one position, or the ranges that the one read was split into.
func TestWhatAnAnswerContinuesWith(t *testing.T) {
	r := changefeed.FeedRange{Min: "10", Max: "20"}
	for _, text := range []string{``, `5`, `{}`, `{"continuation":[]}`, `{"continuation":[{"minInclusive":`} {
		if position, err := decodeToken(text, r); err == nil {
			t.Errorf("%s: taken for the position %q", text, position)
		}
	}
	_, err := decodeToken(`{"continuation":[{"minInclusive":"10","maxExclusive":"18","continuationToken":"\"7\""},{"minInclusive":"18","maxExclusive":"20"}]}`, r)
	split, ok := errors.AsType[*changefeed.SplitError](err)
	if want := []changefeed.FeedRange{{Min: "10", Max: "18"}, {Min: "18", Max: "20"}}; !ok || split.Range != r || !slices.Equal(split.Children, want) {
		t.Errorf("split %+v, want %s into %v", err, r, want)
	}
}

// A reply that does not tell where it is from is not used for a part of the key space.
func TestAReplyThatTellsNoRange(t *testing.T) {
	part := &feedRead{Feed: &Feed{}, req: changefeed.ReadRequest{Range: changefeed.FeedRange{Min: "10", Max: "20"}}}
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
	whole := &feedRead{Feed: &Feed{}, req: changefeed.ReadRequest{Range: changefeed.FullRange()}}
	if got, err := whole.physicalRange(); err != nil || got != changefeed.FullRange() {
		t.Errorf("all there is: %s, %v", got, err)
	}
}
