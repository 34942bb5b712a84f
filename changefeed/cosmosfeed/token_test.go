package cosmosfeed

import (
	"errors"
	"slices"
	"testing"

	"feedbox/changefeed"
)

// A position is the service's ETag with its quotes. The SDK ignores any other position and
// starts from the beginning.
func TestPositionIsAQuotedETag(t *testing.T) {
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

func TestReplyHasOnePositionOrASplit(t *testing.T) {
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

func TestSessionLSN(t *testing.T) {
	for session, want := range map[string]int64{"0:-1#12": 12, "0:1#12#3=4": 12, "0:12": 12, "0:x": 0, "12": 0, "": 0} {
		if got := sessionLSN(session); got != want {
			t.Errorf("session %q has LSN %d, want %d", session, got, want)
		}
	}
}

func TestSessionTerm(t *testing.T) {
	for session, want := range map[string]string{"0:-1#12": "0:-1", "7:1#12#3=4": "7:1", "0:12": "", "": ""} {
		if got := sessionTerm(session); got != want {
			t.Errorf("session %q has the term %q, want %q", session, got, want)
		}
	}
}
