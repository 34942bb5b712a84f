package cosmos

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"feedbox/domain/fault"
)

// headerSessionToken carries session tokens in both directions.
const headerSessionToken = "x-ms-session-token"

// The most a session token may hold. It travels in a header, and the headers of a
// request are limited.
const (
	maxSessionTokenLength = 8192
	maxSessionTokenRanges = 128
)

// sessionToken stands for the writes a client has seen, per partition key range:
//
//	rangeID:version#lsn[#regionID=lsn...][,rangeID:...]
//
// A reply names the one range it came from. A client that talks to several
// contacts meets several ranges, so tokens are merged: the later one of each
// range is kept, and if that gets too long, only the last reply's. The service
// picks the part it needs. The zero value is empty.
type sessionToken struct {
	ranges map[string]rangeToken // by range id
}

type rangeToken struct {
	text    string // all after the range id and its colon
	version int64
	lsn     int64
}

// parseSessionToken reads what a client sent. It is Invalid if no service can
// have issued it.
func parseSessionToken(text string) (sessionToken, error) {
	if text == "" {
		return sessionToken{}, nil
	}
	ranges := make(map[string]rangeToken)
	for part := range strings.SplitSeq(text, ",") {
		id, rest, found := strings.Cut(part, ":")
		token, ok := parseRangeToken(rest)
		if !found || !ok || !isRangeID(id) || len(text) > maxSessionTokenLength || len(ranges) == maxSessionTokenRanges {
			return sessionToken{}, fault.New(fault.Invalid, "invalid_session_token",
				"the session token is not one this service has issued; leave it out or send the last one received")
		}
		ranges[id] = token
	}
	return sessionToken{ranges: ranges}, nil
}

func isRangeID(id string) bool {
	return id != "" && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// parseRangeToken reads version#lsn#..., or the older form that is only an lsn.
func parseRangeToken(text string) (rangeToken, bool) {
	for _, r := range text {
		if (r < '0' || r > '9') && r != '#' && r != '=' && r != '-' {
			return rangeToken{}, false
		}
	}
	first, rest, hasVersion := strings.Cut(text, "#")
	number, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return rangeToken{}, false
	}
	if !hasVersion {
		return rangeToken{text: text, version: -1, lsn: number}, true
	}
	lsnText, _, _ := strings.Cut(rest, "#")
	lsn, err := strconv.ParseInt(lsnText, 10, 64)
	if err != nil {
		return rangeToken{}, false
	}
	return rangeToken{text: text, version: number, lsn: lsn}, true
}

// merge adds what a reply brought. A token it cannot read is left out: the
// service's own tokens are no reason to fail a request that has succeeded.
func (t *sessionToken) merge(text string) {
	reply, err := parseSessionToken(text)
	if err != nil {
		return
	}
	merged := make(map[string]rangeToken, len(t.ranges)+len(reply.ranges))
	maps.Copy(merged, t.ranges)
	for id, token := range reply.ranges {
		if known, ok := merged[id]; !ok || known.olderThan(token) {
			merged[id] = token
		}
	}
	t.ranges = merged
	if len(merged) > maxSessionTokenRanges || len(t.String()) > maxSessionTokenLength {
		t.ranges = reply.ranges
	}
}

func (r rangeToken) olderThan(other rangeToken) bool {
	if r.version != other.version {
		return r.version < other.version
	}
	return r.lsn < other.lsn
}

// String returns the wire form, ranges in order of their ids; empty for none.
func (t sessionToken) String() string {
	parts := make([]string, 0, len(t.ranges))
	for _, id := range slices.Sorted(maps.Keys(t.ranges)) {
		parts = append(parts, id+":"+t.ranges[id].text)
	}
	return strings.Join(parts, ",")
}

// option returns the token for the SDK's request options; nil for none.
func (t sessionToken) option() *string {
	text := t.String()
	if text == "" {
		return nil
	}
	return &text
}
