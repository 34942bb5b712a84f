package consumer

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
)

// Inbox stores the last handled event of each key. Implementations are safe for concurrent use. In
// a process one goroutine at a time uses a key. Across processes only the owner of the session uses
// it, except for a short time after a lost lock.
type Inbox interface {
	// Last returns the mark of key, or the zero Mark if there is none. A kit calls it when it
	// begins to handle a key and after a failure of the inbox.
	Last(ctx context.Context, key string) (Mark, error)
	// Record sets the mark of key unless Mark.Supersedes reports that the stored one is not before it.
	// That is no error.
	Record(ctx context.Context, key string, m Mark) error
}

// Mark identifies the last handled event of a key. Marks are comparable.
type Mark struct {
	Sequence         int64
	AggregateVersion int64
	EventID          string
	// Recent contains hashes of the ids of the events before, for Judge. An inbox that does not store
	// it recognizes a fork at the last event only.
	Recent string
	// Replaces is set in the mark of an event that begins another history: the EventID of the mark
	// that it replaces. It is not stored.
	Replaces string
	// Parking is the id of an event that an owner of the key decided to park, or ParkedKey; "" = none. It is
	// stored before the event is parked, so that of two processes of which one parks the event and the other
	// handles it only one succeeds. An inbox that does not store it lets both succeed; the event is then
	// handled again when its key is drained.
	Parking string
}

// Values of Mark.Parking that are no id.
const (
	// ParkedKey means that events of the key up to this one are parked or were drained: the next one may not
	// be handled before an owner has found the gate of the key open.
	ParkedKey = "*"
	// OpenKey means that an owner has found it open.
	OpenKey = "-"
)

// Recent has a hash of hashSize characters for each of the sequences before that of the mark, the
// latest first. 32 events of a key are more than an asynchronous standby usually loses.
const (
	hashSize  = 8
	maxRecent = 32 * hashSize
)

var noHash = strings.Repeat("0", hashSize) // of an event that was not handled, or has no id

func hashOf(id string) string {
	if id == "" {
		return noHash
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	return fmt.Sprintf("%08x", h.Sum32())
}

// Next returns the mark after e was handled, if m is the mark before.
func (m Mark) Next(e *Event) Mark {
	next := e.Mark()
	if e.Sequence == 0 || m.Sequence == 0 {
		return next
	}
	if m.Parking != e.ID && m.Parking != OpenKey { // e was missing before the event that is to be parked
		next.Parking = m.Parking
	}
	recent := hashOf(m.EventID) + m.Recent
	if ahead := m.Sequence + 1 - e.Sequence; ahead > 0 {
		next.Replaces = m.EventID
		recent = recent[min(ahead, int64(len(recent)/hashSize))*hashSize:]
	} else {
		recent = strings.Repeat(noHash, int(min(-ahead, maxRecent/hashSize))) + recent
	}
	next.Recent = recent[:min(len(recent), maxRecent)]
	return next
}

// Supersedes reports whether m is to be stored in place of stored: it is later, begins another history
// there, or is the stored one with another Parking.
func (m Mark) Supersedes(stored Mark) bool {
	return m.Sequence == 0 && (m.Parking == "" || m.Parking == ParkedKey) && !m.isAt(stored) || m.Sequence > stored.Sequence || m.Replaces != "" && m.Replaces == stored.EventID ||
		m.Parking != "" && m.isAt(stored) && (m.Parking != OpenKey || stored.Parking == ParkedKey)
}

// isAt reports whether two marks are of the same event.
func (m Mark) isAt(other Mark) bool {
	return m.Sequence == other.Sequence && m.EventID == other.EventID
}

// MayHandle returns ErrParking if e must be parked and not handled: e is being parked, or an event before it
// is parked. A handler that stores marks in its own transaction must call it there with the stored mark.
func (m Mark) MayHandle(e *Event) error {
	if m.Parking == ParkedKey || m.Parking != "" && m.Parking == e.ID {
		return ErrParking
	}
	return nil
}

// ErrParking refuses to handle an event of a key that another process has parked, or is parking.
var ErrParking = Unavailable(errors.New("another process has parked the event's key"))

// Replaced returns the number of handled events that the history of e does not contain, 0 unless e is
// a fork.
func (m Mark) Replaced(e *Event) int64 {
	if Judge(m, e) != Fork {
		return 0
	}
	return m.Sequence + 1 - e.Sequence
}

// Verdict classifies an event by the mark of its key.
type Verdict uint8

const (
	// Fresh is the next event of its key, or the first one of a new key.
	Fresh Verdict = iota
	// Gap is an event whose predecessor has not been handled.
	Gap
	// Duplicate is the last handled event.
	Duplicate
	// Stale is an event before the last handled one.
	Stale
	// Fork is another event than the handled one with its sequence: the store has lost that one, and
	// this is the first event of the history that it has now. See the package comment.
	Fork
)

// String returns the verdict as it appears in logs and metrics.
func (v Verdict) String() string {
	switch v {
	case Fresh:
		return "fresh"
	case Gap:
		return "gap"
	case Duplicate:
		return "duplicate"
	case Stale:
		return "stale"
	case Fork:
		return "fork"
	}
	return fmt.Sprintf("verdict(%d)", uint8(v))
}

// Judge compares an event with the mark of its key. Without a sequence it compares the event id and
// the aggregate version, and detects no gaps.
func Judge(last Mark, e *Event) Verdict {
	switch {
	case last == Mark{}:
		return Fresh
	case e.ID != "" && e.ID == last.EventID:
		return Duplicate
	case e.Sequence == 0 || last.Sequence == 0:
		if e.AggregateVersion != 0 && e.AggregateVersion < last.AggregateVersion {
			return Stale
		}
		return Fresh
	case e.Sequence <= last.Sequence:
		recent, at := hashOf(last.EventID)+last.Recent, (last.Sequence-e.Sequence)*hashSize
		if at <= int64(len(recent)-hashSize) && e.ID != "" {
			if known := recent[at : at+hashSize]; known != noHash && known != hashOf(e.ID) {
				return Fork
			}
		}
		return Stale
	case e.Sequence > last.Sequence+1:
		return Gap
	}
	return Fresh
}

// MemoryInbox is an Inbox in the memory of the process. It keeps the most recently used keys; an
// event of an evicted key is treated as fresh.
type MemoryInbox struct {
	mu     sync.Mutex // guards the fields below
	byKey  map[string]*list.Element
	recent *list.List // of *memoryMark, most recently used first
	limit  int
}

type memoryMark struct {
	key  string
	mark Mark
}

var _ Inbox = (*MemoryInbox)(nil)

// NewMemoryInbox returns an inbox of at most limit keys; 0 means 100,000.
func NewMemoryInbox(limit int) *MemoryInbox {
	if limit <= 0 {
		limit = 100_000
	}
	return &MemoryInbox{byKey: make(map[string]*list.Element), recent: list.New(), limit: limit}
}

// Last implements Inbox. It never fails.
func (b *MemoryInbox) Last(_ context.Context, key string) (Mark, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.byKey[key]
	if !ok {
		return Mark{}, nil
	}
	b.recent.MoveToFront(e)
	return e.Value.(*memoryMark).mark, nil
}

// Record implements Inbox. It never fails.
func (b *MemoryInbox) Record(_ context.Context, key string, m Mark) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.byKey[key]
	if !ok {
		m.Replaces = ""
		b.byKey[key] = b.recent.PushFront(&memoryMark{key, m})
		if len(b.byKey) > b.limit {
			oldest := b.recent.Back()
			delete(b.byKey, b.recent.Remove(oldest).(*memoryMark).key)
		}
		return nil
	}
	b.recent.MoveToFront(e)
	if stored := e.Value.(*memoryMark); m.Supersedes(stored.mark) {
		stored.mark, stored.mark.Replaces = m, ""
	}
	return nil
}
