package store

import (
	"slices"
	"strconv"
	"strings"

	"feedbox/domain/fault"
)

// HeaderSession carries session tokens in both directions.
const HeaderSession = "x-ms-session-token"

// The most a session token may hold. It travels in a header, and the headers of a
// request are limited.
const (
	maxSessionTokenLength = 8192
	maxSessionTokenRanges = 128
)

// Session stands for the writes a client has seen, per partition key range:
//
//	rangeID:version#lsn[#regionID=lsn...][,rangeID:...]
//
// A reply names the one range it came from. A client that talks to several
// aggregates meets several ranges, so tokens are merged: the later one of each
// range is kept, and if that gets too long, only the last reply's. The service
// picks the part it needs. The zero value is empty.
type Session struct {
	ranges []rangeToken // in the order of their ids, each once; shared by copies
}

type rangeToken struct {
	id      string
	text    string // all after the range id and its colon
	version int64
	lsn     int64
}

// ParseSession reads what a client sent. It is Invalid if no service can
// have issued it.
func ParseSession(text string) (Session, error) {
	if text == "" {
		return Session{}, nil
	}
	var t Session
	for part := range strings.SplitSeq(text, ",") {
		id, rest, found := strings.Cut(part, ":")
		token, ok := parseRangeToken(rest)
		if !found || !ok || !isRangeID(id) || len(text) > maxSessionTokenLength || len(t.ranges) == maxSessionTokenRanges {
			return Session{}, fault.New(fault.Invalid, "invalid_session_token",
				"the session token is not one this service has issued; leave it out or send the last one received")
		}
		token.id = id
		t.ranges = put(t.ranges, token, func(rangeToken) bool { return true })
	}
	return t, nil
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

// Merge adds what a reply brought. A token it cannot read is left out: the
// service's own tokens are no reason to fail a request that has succeeded.
func (t *Session) Merge(text string) {
	reply, err := ParseSession(text)
	if err != nil {
		return
	}
	if len(t.ranges) == 0 {
		t.ranges = reply.ranges
		return
	}
	merged := slices.Clone(t.ranges)
	for _, token := range reply.ranges {
		merged = put(merged, token, token.newerThan)
	}
	if t.ranges = merged; len(merged) > maxSessionTokenRanges || t.length() > maxSessionTokenLength {
		t.ranges = reply.ranges
	}
}

// put adds token, or replaces the one of the same range if that is wanted.
func put(ranges []rangeToken, token rangeToken, replaces func(rangeToken) bool) []rangeToken {
	at, found := slices.BinarySearchFunc(ranges, token.id, func(r rangeToken, id string) int { return strings.Compare(r.id, id) })
	switch {
	case !found:
		return slices.Insert(ranges, at, token)
	case replaces(ranges[at]):
		ranges[at] = token
	}
	return ranges
}

func (r rangeToken) newerThan(known rangeToken) bool {
	if r.version != known.version {
		return r.version > known.version
	}
	return r.lsn > known.lsn
}

// length is that of the wire form.
func (t Session) length() int {
	length := max(0, len(t.ranges)-1) // the commas
	for _, r := range t.ranges {
		length += len(r.id) + len(":") + len(r.text)
	}
	return length
}

// String returns the wire form, ranges in order of their ids; empty for none.
func (t Session) String() string {
	var text strings.Builder
	text.Grow(t.length())
	for i, r := range t.ranges {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(r.id)
		text.WriteByte(':')
		text.WriteString(r.text)
	}
	return text.String()
}

// Option returns the token for the SDK's request options; nil for none.
func (t Session) Option() *string {
	text := t.String()
	if text == "" {
		return nil
	}
	return &text
}
