package cosmosfeed

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"feedbox/changefeed"
)

// token is azcosmos' continuation of ReadChangeFeed
// (cosmos_change_feed_composite_continuation_token.go). This package passes tokens of
// exactly one entry: the lease's range and position. More entries in the reply mean that
// the SDK expanded the range to several physical ones.
type token struct {
	Version      int          `json:"version"`
	ResourceID   string       `json:"resourceId"`
	Continuation []tokenEntry `json:"continuation"`
}

type tokenEntry struct {
	MinInclusive      string  `json:"minInclusive"`
	MaxExclusive      string  `json:"maxExclusive"`
	ContinuationToken *string `json:"continuationToken,omitempty"`
}

// fromNow is the position at the end of the feed (If-None-Match: *).
const fromNow = "*"

// encodeToken returns the continuation to read r after a position; "" is the start. The
// position must be a raw ETag with its quotes, because the SDK would silently ignore any
// other position and start from the beginning.
func encodeToken(resourceID string, r changefeed.FeedRange, position string) (string, error) {
	entry := tokenEntry{MinInclusive: r.Min, MaxExclusive: r.Max}
	if position != "" {
		if position != fromNow && (len(position) < 3 || position[0] != '"' || position[len(position)-1] != '"') {
			return "", fmt.Errorf("continuation %q is not a quoted ETag", position)
		}
		entry.ContinuationToken = &position
	}
	body, err := json.Marshal(token{Version: 1, ResourceID: resourceID, Continuation: []tokenEntry{entry}})
	if err != nil {
		return "", fmt.Errorf("encode continuation: %w", err)
	}
	return string(body), nil
}

// decodeToken returns the position in a reply, or *changefeed.SplitError. The documents of
// a reply with several entries must not be used, because they are one child's page.
func decodeToken(text string, r changefeed.FeedRange) (position string, err error) {
	var t token
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return "", fmt.Errorf("decode continuation: %w", err)
	}
	switch {
	case len(t.Continuation) == 0:
		return "", errors.New("the reply has no continuation")
	case len(t.Continuation) > 1:
		split := &changefeed.SplitError{Range: r}
		for _, e := range t.Continuation {
			split.Children = append(split.Children, changefeed.FeedRange{Min: e.MinInclusive, Max: e.MaxExclusive})
		}
		return "", split
	case t.Continuation[0].ContinuationToken == nil:
		return "", nil
	}
	return *t.Continuation[0].ContinuationToken, nil
}

// sessionTerm returns the id of the physical range and the version in a session token, "0:1" for
// "0:1#12#3=4". The version changes with the regions of the account and with a failover. It returns
// "" for a token without a version.
func sessionTerm(session string) string {
	term, _, versioned := strings.Cut(session, "#")
	if !versioned {
		return ""
	}
	return term
}

// sessionLSN returns the LSN in a session token: "0:-1#12" and "0:1#12#3=4" have it in the
// second part, "0:12" in the only one. It returns 0 if there is none.
func sessionLSN(session string) int64 {
	_, vector, found := strings.Cut(session, ":")
	if !found {
		return 0
	}
	parts := strings.Split(vector, "#")
	n, err := strconv.ParseInt(parts[min(1, len(parts)-1)], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
