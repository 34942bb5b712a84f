package cosmosemu

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// sessionToken formats a session token: "<range id>:<version>#<lsn>". The version is -1, and
// from the first failover with lost writes on the number of these, because the SDKs compare
// the LSNs of two tokens only within one version (VectorSessionToken of .NET and Java).
func sessionToken(rangeID string, epoch int64, lsn uint64) string {
	if epoch == 0 {
		epoch = -1
	}
	b := make([]byte, 0, 32)
	b = strconv.AppendInt(append(append(b, rangeID...), ':'), epoch, 10)
	return string(strconv.AppendUint(append(b, '#'), lsn, 10))
}

func rangeToken(r *store.Range, lsn uint64) string { return sessionToken(r.ID, r.Epoch, lsn) }

func commitToken(c store.Commit) string { return sessionToken(c.Range, c.Epoch, c.LSN) }

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
