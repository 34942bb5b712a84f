package recordstoretest

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/recordstore"
)

// Events reads stored events, replaces one, and checks that expired events are not found.
func Events(t *testing.T, s Subject) {
	t.Helper()
	made, err := Baskets(t, s.Store, nil).Create(t.Context(), Opening(""))
	must(t, err)
	id := made.Aggregate.ID()
	s.add(t, id, time.Hour)
	s.History(t, id, 2, 2)
	stored, err := s.Events().OfKey(t.Context(), id.String())
	must(t, err)
	for _, e := range stored {
		if e.StoredAt.IsZero() || !e.StoredAt.Equal(e.StoredAt.Truncate(time.Second)) {
			t.Errorf("an event was stored at %s, which is not a whole second", e.StoredAt)
		}
	}
	s.correct(t, id.String(), stored[0].ID)

	s.add(t, id, time.Nanosecond)
	expired := s.lastOf(t, id, 3)
	if _, err := s.Events().Event(t.Context(), id.String(), expired); !fault.Is(err, fault.NotFound) {
		t.Errorf("an event that has expired: %v", err)
	}
	if err := s.Events().Replace(t.Context(), id.String(), expired, []byte(`{}`), ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("an event that has expired is replaced: %v", err)
	}
	s.History(t, id, 2, 3)
}

// add adds a line to a basket with an event of that lifetime.
func (s Subject) add(t *testing.T, id uuid.UUID, lifetime time.Duration) {
	t.Helper()
	p := Baskets(t, s.Store, &recordstore.Options{EventTTL: lifetime})
	_, err := p.Update(t.Context(), command.Target{ID: id}, func(b *Basket) error { return b.Add("line") })
	must(t, err)
}

// lastOf returns the id of the event of the last of n audit entries.
func (s Subject) lastOf(t *testing.T, id uuid.UUID, n int) string {
	t.Helper()
	page, err := recordstore.AuditReader{Store: s.Store}.Audit(t.Context(), id, n, "", "")
	must(t, err)
	if len(page.Entries) != n || len(page.Entries[n-1].Events) != 1 {
		t.Fatalf("the audit trail is %+v", page.Entries)
	}
	last := page.Entries[n-1].Events[0]
	if last.Action != (lineAdded{}).Action() || last.Sequence != int64(n) {
		t.Errorf("the audit trail ends with %+v", last)
	}
	return last.ID.String()
}

// correct replaces an event, and checks that an old version is refused.
func (s Subject) correct(t *testing.T, key, id string) {
	t.Helper()
	events := s.Events()
	before, err := s.Store.Event(t.Context(), key, id)
	must(t, err)
	clean, version, err := events.Editable(before.Document)
	must(t, err)
	corrected := append([]byte{' '}, clean...)
	must(t, events.Replace(t.Context(), key, id, corrected, version))
	if now, err := events.Event(t.Context(), key, id); err != nil || string(now) != string(corrected) {
		t.Errorf("replaced: %s, %v", now, err)
	}
	if err := events.Replace(t.Context(), key, id, clean, version); !fault.Is(err, fault.PreconditionFailed) {
		t.Errorf("an older version was replaced: %v", err)
	}
	// Another change happens between the check of the version and the commit.
	if done, err := s.Store.ReplaceEvent(t.Context(), key, id, before, clean); done || err != nil {
		t.Errorf("an event that was changed since it was read: %t, %v", done, err)
	}
	for _, other := range [][2]string{{key, "gone"}, {"another", id}} {
		if err := events.Replace(t.Context(), other[0], other[1], corrected, version); !fault.Is(err, fault.NotFound) {
			t.Errorf("event %s of key %s: %v", other[1], other[0], err)
		}
	}
}
