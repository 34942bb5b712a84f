package changefeed

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"

	"feedbox/changefeed/internal/jsonscan"
)

// Ahead describes the changes after a lease's checkpoint that are done: all up to LSN except
// those of the held keys, from the LSN of the key on. See "Inside a range" in doc.go.
type Ahead struct {
	LSN  int64     `json:"lsn,omitempty"`
	Held []HeldKey `json:"held,omitempty"`
	// Position is, in a record, a hash of the checkpoint and the history that it was stored
	// with. Beside other ones an Ahead is ignored, because another product or an earlier
	// version of this package has then moved the checkpoint, perhaps backward.
	Position uint64 `json:"at"`
}

// HeldKey is a key with a change that is not done.
type HeldKey struct {
	// Key is a hash, because keys may be long. Two keys with one hash only cause redelivery.
	Key      uint64 `json:"k"`
	LSN      int64  `json:"l"`           // of its first change that is not done
	ID       string `json:"d,omitempty"` // of that document
	Refusals int    `json:"n,omitempty"` // of that document
	// Outlasted means that other keys were handled between two attempts of this one.
	Outlasted bool `json:"o,omitempty"`

	// Only the next session of this process has these: see heldKey.
	since   time.Time
	attempt int
}

// maxHeldBytes bounds the held keys in a record, because each write of a lease costs its
// size. It is enough for some 400 keys.
const maxHeldBytes = 32 << 10

// size is the encoded size of h, or a bit more.
func (h *HeldKey) size() int { return 80 + len(h.ID) }

// positionHash returns the Position of an Ahead that is stored with l.
func (l *Lease) positionHash() uint64 {
	return hashOf(fmt.Appendf(nil, "%s %d %s", l.Continuation, l.Since.UnixNano(), l.History))
}

// hashOf returns a hash that is the same in every process.
func hashOf(b []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(b)
	return h.Sum64()
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
