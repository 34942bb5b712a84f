package cosmos_test

import (
	"fmt"
	"sync"
	"testing"

	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/domain/fault"
)

// Concurrent writers without preconditions: every accepted write counts once and has its event.
func TestConcurrentWritersOfOneContact(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	id := w.create().Contact.ID
	const writers, writes = 8, 10
	var (
		wg       sync.WaitGroup
		mu       sync.Mutex // guards accepted
		accepted int64
	)
	for writer := range writers {
		wg.Go(func() {
			for i := range writes {
				if _, err := w.rename(t.Context(), id, fmt.Sprintf("Writer %d, %d", writer, i)); err != nil {
					t.Errorf("writer %d: %v", writer, err)
					continue
				}
				mu.Lock()
				accepted++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	stored, events := w.documents(id)
	if stored.Data.Version != accepted+1 || int64(len(events)) != accepted+1 || stored.Data.Sequence != accepted+1 {
		t.Errorf("%d accepted, version %d, sequence %d, %d events", accepted, stored.Data.Version, stored.Data.Sequence, len(events))
	}
}

// Concurrent writers with preconditions: every accepted write is a new version, and no version is
// accepted twice.
func TestConditionalWritersOfOneContact(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	id := w.create().Contact.ID
	const writers, writes = 64, 3
	var (
		wg       sync.WaitGroup
		mu       sync.Mutex // guards versions
		versions = map[int64]bool{}
	)
	for writer := range writers {
		wg.Go(func() {
			session := ""
			for i := range writes {
				seen, err := mediator.Send(t.Context(), w.app, contacts.ReadContact{Read: query.Read{ID: id, SessionToken: session}})
				if err != nil {
					t.Errorf("writer %d reads: %v", writer, err)
					return
				}
				session = seen.SessionToken
				out, err := w.rename(t.Context(), id, fmt.Sprintf("Writer %d, %d", writer, i), seen.ETag)
				if fault.Is(err, fault.PreconditionFailed) {
					continue
				}
				if err != nil {
					t.Errorf("writer %d writes: %v", writer, err)
					return
				}
				mu.Lock()
				if versions[out.Version] || out.Version != seen.Contact.Version+1 {
					t.Errorf("writer %d: version %d after %d", writer, out.Version, seen.Contact.Version)
				}
				versions[out.Version] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	stored, events := w.documents(id)
	if n := int64(len(versions)); stored.Data.Version != n+1 || int64(len(events)) != n+1 {
		t.Errorf("%d accepted, version %d, %d events", n, stored.Data.Version, len(events))
	}
}
