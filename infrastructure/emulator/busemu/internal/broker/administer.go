package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// administration is a change of the catalog with the records it writes.
type administration struct {
	c       *catalog
	records []func(w *writer)
	left    []remains // of dropped holders
	later   callbacks
	done    chan<- error
}

// administer runs change with the catalog locked and blocks until its records are durable. A
// change that fails must leave the catalog as it was.
func (c *catalog) administer(ctx context.Context, change func(*administration) error) error {
	done, err := c.change(change)
	if err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// change is administer without the wait.
func (c *catalog) change(change func(*administration) error) (done <-chan error, err error) {
	if c.closed.Load() {
		return nil, closed()
	}
	if err := c.store.refusal(); err != nil {
		return nil, err // even for a request that would change nothing, because earlier changes may not be stored
	}
	ended := make(chan error, 1)
	a := &administration{c: c, done: ended}
	defer a.later.run()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := change(a); err != nil {
		return nil, err
	}
	c.submit(a, &a.later)
	return ended, nil
}

func (a *administration) write(w *writer) {
	if w != nil {
		for _, record := range a.records {
			record(w)
		}
	}
	for _, r := range a.left {
		r.release(w)
	}
}

func (a *administration) publish(*callbacks) {}

func (a *administration) finish(err error) { a.done <- err }

// save stores an entity's record.
func (a *administration) save(id uint32, r entityRecord) {
	value, err := json.Marshal(r)
	last := a.c.lastID
	a.records = append(a.records, func(w *writer) {
		if err != nil {
			w.keep(fmt.Errorf("encode entity %s: %w", r.Name, err))
			return
		}
		w.putEntity(id, value)
		w.putLastID(last)
	})
}

// drop retires an entity's holders and deletes its records.
func (a *administration) drop(id uint32, s holders) {
	a.left = append(a.left, s.retire(&a.later)...)
	a.records = append(a.records, func(w *writer) {
		w.deleteEntity(id)
		for _, h := range s.all() {
			if h.id != 0 { // the transfer queue is not stored
				w.deleteHolder(&h.numbering)
			}
		}
	})
}

func (e *engine) newTimes() Times {
	now := e.Now()
	return Times{CreatedAt: now, UpdatedAt: now, AccessedAt: now}
}

func accessed(t Times, used ...int64) time.Time {
	last := t.AccessedAt
	for _, u := range used {
		if u != 0 && at(u).After(last) {
			last = at(u)
		}
	}
	return last
}
