package relay_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/domain/fault"
)

// store holds the current documents of events; an empty one was removed.
type store struct {
	mu     sync.Mutex // guards events
	events map[string]string
}

func (s *store) put(id, document string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.events == nil {
		s.events = map[string]string{}
	}
	s.events[id] = document
}

func (s *store) Event(_ context.Context, _, id string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch document, ok := s.events[id]; {
	case !ok:
		return nil, errors.New("the store is away")
	case document == "":
		return nil, fault.New(fault.NotFound, "", "no event")
	default:
		return []byte(document), nil
	}
}

func TestRetryFromStoreSendsCurrentDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{}, parkedtest.NewMemory()
		var newer []string
		r := newRelay(t, b, withParked(mem, relay.Options{Observer: relay.Observer{Newer: func(_ context.Context, e relay.ParkedEvent) {
			newer = append(newer, e.ID)
		}}}))
		if err := r.Park(t.Context(), deadLetter("a a1 ?", 1, errTooLarge)); err != nil {
			t.Fatal(err)
		}
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a2 2@2", "a a1 ?@1")); failed != nil {
			t.Fatal(failed)
		}
		if len(newer) != 0 {
			t.Errorf("reported of %v, which came again as they are parked", newer)
		}
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1@3", "a a3 3@4")); failed != nil {
			t.Fatal(failed)
		}
		if diff := cmp.Diff([]string{"a1"}, newer); diff != "" {
			t.Errorf("reported of newer events (-want +got):\n%s", diff)
		}
		stored, bodies := &store{}, map[string]string{}
		stored.put("a1", "a a1 1 mended")
		seeing := publisherCtx(func(ctx context.Context, groups []relay.Group) error {
			for _, m := range groups[0].Messages {
				bodies[m.ID] = string(m.Body)
			}
			return b.Publish(ctx, groups)
		})
		drained := &reportLog{}
		run(t, newDrainer(t, mem, seeing, relay.DrainOptions{Stored: stored}, drained))
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry})
		settle(10 * time.Second)
		if b.sent != 0 {
			t.Fatalf("sent %v, which was parked unfit", b.got)
		}
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry, FromStore: true})
		settle(7 * time.Second) // the store is away for a2
		stored.put("a2", "a a2 2")
		stored.put("a3", "a a3 3")
		settle(time.Minute)
		if diff := cmp.Diff([]string{"a1", "a2", "a3"}, b.got["a"]); diff != "" || bodies["a1"] != "a a1 1 mended" {
			t.Errorf("sent %v, published (-want +got):\n%s", bodies, diff)
		}
		all := drained.all()
		if last := all[len(all)-1]; last != "a sent 2 differ 0 skip false open true unknown" || strings.Count(strings.Join(all, "\n"), "sent 1 differ 1 skip false open false") != 1 {
			t.Errorf("drained %v", all)
		}
	})
}

func TestRetryFromStoreOfRemovedEventIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		parkAll(t, r, "a", 3)
		drained := &reportLog{}
		stored := &store{}
		stored.put("a1", "a a1 1")
		stored.put("a2", "")
		run(t, newDrainer(t, mem, b, relay.DrainOptions{Stored: stored}, drained))
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry, FromStore: true})
		settle(10 * time.Second)
		g, err := mem.Gate(t.Context(), "a")
		if err != nil || g.Intent != nil || g.Attempts != 1 || b.sent != 1 {
			t.Fatalf("gate %+v, %v, sent %v; want the intent given up behind a1", g, err, b.got)
		}
		if diff := cmp.Diff([]string{"a sent 1 differ 0 skip false open false not_stored"}, drained.all()); diff != "" {
			t.Errorf("drained (-want +got):\n%s", diff)
		}
	})
}

// Without a reader of stored events the intent is dropped, and the parked document is not sent
// instead.
func TestRetryFromStoreWithoutReaderIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{}, parkedtest.NewMemory()
		parkAll(t, newRelay(t, b, withParked(mem, relay.Options{})), "a", 1)
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry, FromStore: true})
		reported := reports(t, mem, &owner{}, b, relay.DrainOptions{})
		if len(reported) != 1 || relay.ReasonOf(reported[0].Err) != "not_stored" || b.sent != 0 {
			t.Errorf("reported %+v, %d sent; want it given up", reported, b.sent)
		}
	})
}

// Changed counts only sent events. An event that was removed from the store was not refused, so
// the gate stays automatic.
func TestRetryFromStoreCountsOnlySentChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem, stored, drained := &broker{}, parkedtest.NewMemory(), &store{}, &reportLog{}
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		parkWaiting(t, r, "a")
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a2 2@2", "a a3 3@3")); failed != nil {
			t.Fatal(failed)
		}
		stored.put("a1", "a a1 1 mended")
		stored.put("a2", "a a2 2 mended")
		stored.put("a3", "")
		b.fail = map[string]relay.KeyError{"a": {Sent: 1, Err: errBusy}}
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry, FromStore: true})
		run(t, newDrainer(t, mem, b, relay.DrainOptions{Stored: stored}, drained))
		settle(time.Second)
		want(t, "drained", drained.all(), "a sent 1 differ 1 skip false open false busy")
		b.mu.Lock()
		b.fail = failing(errBusy, "a")
		b.mu.Unlock()
		stored.put("a2", "")
		settle(time.Minute)
		if g, err := mem.Gate(t.Context(), "a"); err != nil || g.Intent != nil || !g.Closing.Auto {
			t.Errorf("gate %+v, %v; want the intent given up and the key to wait for the broker", g, err)
		}
	})
}
