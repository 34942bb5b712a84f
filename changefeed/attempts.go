package changefeed

import (
	"strconv"
	"strings"
)

// A document's attempts are kept in its lease under "LSN:id": a later version of
// the document has another LSN and starts anew, and an entry the checkpoint has
// passed can be dropped.

// maxAttemptEntries bounds what one lease remembers. Beyond it the entries with
// the highest LSN are forgotten first: they come again last.
const maxAttemptEntries = 64

func documentName(item *Item) string {
	return strconv.FormatInt(item.LSN, 10) + ":" + documentID(item)
}

func documentLSN(name string) int64 {
	lsn, _, _ := strings.Cut(name, ":")
	n, err := strconv.ParseInt(lsn, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func countOf(attempts []DocumentAttempts, name string) int {
	for _, a := range attempts {
		if a.Document == name {
			return a.Count
		}
	}
	return 0
}

// addAttempt returns attempts with one more for name, and the new count.
func addAttempt(attempts []DocumentAttempts, name string) ([]DocumentAttempts, int) {
	for i := range attempts {
		if attempts[i].Document == name {
			attempts[i].Count++
			return attempts, attempts[i].Count
		}
	}
	attempts = append(attempts, DocumentAttempts{Document: name, Count: 1})
	if len(attempts) > maxAttemptEntries {
		last := 0
		for i := range attempts {
			if documentLSN(attempts[i].Document) > documentLSN(attempts[last].Document) {
				last = i
			}
		}
		attempts = append(attempts[:last], attempts[last+1:]...)
	}
	return attempts, 1
}
