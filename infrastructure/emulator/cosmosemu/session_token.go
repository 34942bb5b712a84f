package cosmosemu

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// sessionToken is "<range id>:-1#<lsn>".
func sessionToken(rangeID string, lsn uint64) string {
	b := make([]byte, 0, 32)
	b = append(append(b, rangeID...), ":-1#"...)
	return string(strconv.AppendUint(b, lsn, 10))
}

// tokenLSN is the LSN of a token of one range, "" for others.
func tokenLSN(token string) string {
	_, lsn, _ := strings.Cut(token, "#")
	if strings.Contains(lsn, ",") {
		return ""
	}
	return lsn
}

// tokenRange is the range of a token of one, "" for others. Without it the SDK for Python
// reads the ranges again after each operation.
func tokenRange(token string) string {
	id, rest, _ := strings.Cut(token, ":")
	if strings.Contains(rest, ",") {
		return ""
	}
	return id
}

// checkSession refuses a read that asks for a state a range has not seen: 404 with
// sub-status 1002, as the service does. A token may list several ranges, separated by
// commas; that of an ancestor counts for each range that goes on where it stood, and
// one of a range that never was for none. rng is nil if the read goes over all.
func (x *request) checkSession(c *store.Container, rng *store.Range) error {
	token := first(x.header, headerSessionToken)
	if token == "" {
		return nil
	}
	ranges := c.Topology().Ranges
	if rng != nil {
		ranges = []store.Range{*rng}
	}
	for part := range strings.SplitSeq(token, ",") {
		id, lsn, ok := parseSessionToken(part)
		if !ok {
			return refuse(http.StatusBadRequest, "The session token %q is invalid: expected <range id>:-1#<lsn>", part)
		}
		for i := range ranges {
			if r := &ranges[i]; (id == r.ID || slices.Contains(r.Parents, id)) && lsn > r.LSN() {
				return refuse(http.StatusNotFound, "The read/write session is not available for the input session token: LSN %d of range %s is asked for, %d is the last", lsn, id, r.LSN()).sub(subSessionUnavailable)
			}
		}
	}
	return nil
}

// parseSessionToken reads "<range id>:<version>#<lsn>[#<region>=<lsn>...]", and
// the older "<range id>:<lsn>".
func parseSessionToken(text string) (rangeID string, lsn uint64, ok bool) {
	rangeID, rest, found := strings.Cut(strings.TrimSpace(text), ":")
	if !found || rangeID == "" {
		return "", 0, false
	}
	if _, after, versioned := strings.Cut(rest, "#"); versioned {
		rest, _, _ = strings.Cut(after, "#")
	}
	lsn, err := strconv.ParseUint(rest, 10, 64)
	return rangeID, lsn, err == nil
}
