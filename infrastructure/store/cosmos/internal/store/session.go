package store

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"feedbox/domain/fault"
)

// HeaderSession carries session tokens in both directions.
const HeaderSession = "x-ms-session-token"

// Limits of a session token. It is sent in a header, and the size of headers is limited.
const (
	maxSessionTokenLength = 8192
	maxSessionTokenRanges = 128
)

// Session is the latest position that a client has seen, per partition key range:
//
//	rangeID:version#lsn[#regionID=lsn...][,rangeID:...]
//
// A reply names the range it came from. A client that uses several aggregates gets several
// ranges, so tokens are merged: the later token of each range is kept. If the result exceeds the
// limits, only the token of the last reply is kept. The service picks the range it needs. The
// zero value is empty.
type Session struct {
	ranges []rangeToken // in the order of their ids, each once; shared by copies
}

type rangeToken struct {
	id      string
	text    string // all after the range id and its colon
	version int64
	lsn     int64
}

// ParseSession parses the token of a client. The fault is Invalid for a token that no service can
// have issued.
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

// Merge adds the token of a reply. It ignores a token that it cannot parse, because the request
// has succeeded.
func (t *Session) Merge(text string) {
	reply, err := ParseSession(text)
	if err != nil {
		return
	}
	if len(t.ranges) == 0 {
		t.ranges = reply.ranges
		return
	}
	if t.ranges = t.with(reply); t.exceeds() {
		t.ranges = reply.ranges
	}
}

// Add adds an earlier token of the client. The fault is Invalid as of ParseSession, or if both together
// exceed the limits: unlike Merge it drops none, because the client asked for both.
func (t *Session) Add(text string) error {
	other, err := ParseSession(text)
	if err != nil {
		return err
	}
	both := Session{ranges: t.with(other)}
	if both.exceeds() {
		return fault.New(fault.Invalid, "invalid_session_token",
			fmt.Sprintf("the session tokens together have more than %d ranges or %d bytes; give only the latest", maxSessionTokenRanges, maxSessionTokenLength))
	}
	*t = both
	return nil
}

// with returns the later token of each range of t and other.
func (t *Session) with(other Session) []rangeToken {
	merged := slices.Clone(t.ranges)
	for _, token := range other.ranges {
		merged = put(merged, token, token.newerThan)
	}
	return merged
}

// exceeds reports whether the service would not accept the token.
func (t *Session) exceeds() bool {
	return len(t.ranges) > maxSessionTokenRanges || t.length() > maxSessionTokenLength
}

// put adds token, or replaces the token of the same range if replaces allows it.
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
