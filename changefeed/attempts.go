package changefeed

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"feedbox/changefeed/internal/jsonscan"
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
	n, _ := strconv.ParseInt(lsn, 10, 64) // written here
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
		last := slices.MaxFunc(attempts, func(a, b DocumentAttempts) int {
			return cmp.Compare(documentLSN(a.Document), documentLSN(b.Document))
		})
		attempts = slices.DeleteFunc(attempts, func(a DocumentAttempts) bool { return a == last })
	}
	return attempts, 1
}

// documentID is the document's "id", or "".
func documentID(item *Item) string {
	id := jsonscan.Member(item.Raw, "id")
	var text string
	if json.Unmarshal(id, &text) == nil {
		return text
	}
	return string(id)
}

// prune forgets the attempts of documents the checkpoint has passed.
func prune(attempts []DocumentAttempts, lsn int64) []DocumentAttempts {
	return slices.DeleteFunc(slices.Clone(attempts), func(a DocumentAttempts) bool { return documentLSN(a.Document) <= lsn })
}
