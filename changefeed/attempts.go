package changefeed

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"feedbox/changefeed/internal/jsonscan"
)

// A document's attempts are kept in its lease under "LSN:id", because they must survive
// restarts and hand-offs. A later version of the document has another LSN and starts at
// zero, and an entry before the checkpoint can be dropped.

// maxAttemptEntries bounds the entries of one lease. Beyond it the entry with the highest
// LSN is dropped first, because that document is redelivered last.
const maxAttemptEntries = 64

func documentName(item *Item) string {
	return strconv.FormatInt(item.LSN, 10) + ":" + documentID(item)
}

func documentLSN(name string) int64 {
	lsn, _, _ := strings.Cut(name, ":")
	n, _ := strconv.ParseInt(lsn, 10, 64) // written by documentName
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

// addAttempt adds one to the count of name, and returns the attempts and the new count.
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

// documentID returns the document's "id", or "".
func documentID(item *Item) string {
	id := jsonscan.Member(item.Raw, "id")
	var text string
	if json.Unmarshal(id, &text) == nil {
		return text
	}
	return string(id)
}

// prune drops the attempts of documents before the checkpoint.
func prune(attempts []DocumentAttempts, lsn int64) []DocumentAttempts {
	return slices.DeleteFunc(slices.Clone(attempts), func(a DocumentAttempts) bool { return documentLSN(a.Document) <= lsn })
}
