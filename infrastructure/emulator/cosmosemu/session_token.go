package cosmosemu

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// sessionToken formats a session token: "<range id>:-1#<lsn>".
func sessionToken(rangeID string, lsn uint64) string {
	b := make([]byte, 0, 32)
	b = append(append(b, rangeID...), ":-1#"...)
	return string(strconv.AppendUint(b, lsn, 10))
}

// tokenLSN returns the LSN of a token for one range, "" for a token of several.
func tokenLSN(token string) string {
	_, lsn, _ := strings.Cut(token, "#")
	if strings.Contains(lsn, ",") {
		return ""
	}
	return lsn
}

// tokenRange returns the range id of a token for one range, "" for a token of several.
// Replies carry it because the SDK for Python otherwise reads the ranges again after each
// operation.
func tokenRange(token string) string {
	id, rest, _ := strings.Cut(token, ":")
	if strings.Contains(rest, ",") {
		return ""
	}
	return id
}

// checkSession refuses a token that asks for a later LSN than a range has. A token may list
// several ranges, separated by commas. The LSN of a range that was split or merged applies
// to each of its descendants. An unknown range is ignored.
func checkSession(token string, ranges []store.Range) error {
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
