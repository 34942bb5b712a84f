package consumer

import (
	"container/list"
	"context"
	"sync"
)

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
