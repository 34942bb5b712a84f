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

// checkSession refuses a read that asks for a state this container has not seen:
// 404 with sub-status 1002, as the service does. A token may list several ranges,
// separated by commas; those of ancestors count, since LSNs are the container's.
func (x *exchange) checkSession(c *store.Container, rng *store.Range) error {
	token := first(x.header, headerSessionToken)
	if token == "" {
		return nil
	}
	seen := c.LSN()
	for part := range strings.SplitSeq(token, ",") {
		id, lsn, ok := parseSessionToken(part)
		if !ok {
			return refuse(http.StatusBadRequest, "The session token %q is invalid: expected <range id>:-1#<lsn>", part)
		}
		if rng != nil && id != rng.ID && !slices.Contains(rng.Parents, id) {
			continue
		}
		if lsn > seen {
			return refuse(http.StatusNotFound, "The read session is not available for the input session token: LSN %d is asked for, %d is the last", lsn, seen).sub(subSessionUnavailable)
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
