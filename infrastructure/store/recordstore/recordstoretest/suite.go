package recordstoretest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/query"
	"feedbox/domain/aggregate"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/recordstore"
	"feedbox/infrastructure/store/unitofwork"
)

// Subject is a store under test.
type Subject struct{ Store recordstore.Store }

// Events returns the events of the store.
func (s Subject) Events() recordstore.Events {
	return recordstore.Events{Store: s.Store, Decoder: document.EventDecoder{}}
}

// History checks that id has the events with sequences 1 to n and an audit entry for each of
// the versions.
func (s Subject) History(t *testing.T, id uuid.UUID, n, versions int) {
	t.Helper()
	events, err := s.Events().OfKey(t.Context(), id.String())
	must(t, err)
	for i, e := range events {
		if e.Sequence != int64(i+1) {
			t.Errorf("event %d has the sequence %d", i, e.Sequence)
		}
	}
	page, err := recordstore.AuditReader{Store: s.Store}.Audit(t.Context(), id, 100, "", "")
	must(t, err)
	if len(events) != n || len(page.Entries) != versions {
		t.Errorf("%d events and %d audit entries; want %d and %d", len(events), len(page.Entries), n, versions)
	}
}

// ordinals checks the places of the events of id in their transactions.
func (s Subject) ordinals(t *testing.T, id uuid.UUID, want ...int64) {
	t.Helper()
	events, err := s.Events().OfKey(t.Context(), id.String())
	must(t, err)
	var got []int64
	for _, e := range events {
		got = append(got, e.Ordinal)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the events have the ordinals %d; want %d", got, want)
	}
}

// UnitOfWork creates, changes, repeats, reads and lists baskets.
func UnitOfWork(t *testing.T, s Subject) {
	t.Helper()
	p := Baskets(t, s.Store, nil)
	made, err := p.Create(t.Context(), Opening("one"))
	must(t, err)
	id := made.Aggregate.ID()
	if made.ETag != `"1"` || made.Replayed || made.SessionToken != "" {
		t.Errorf("created: %+v", made)
	}
	again, err := p.Create(t.Context(), Opening("one"))
	if err != nil || !again.Replayed || again.Aggregate.ID() != id || again.ETag != `"1"` {
		t.Errorf("repeated: %+v, %v", again, err)
	}
	target := command.Target{ID: id, IfMatch: []string{`"1"`}, Sender: command.Sender{IdempotencyKey: "two"}}
	add := func(b *Basket) error { return errors.Join(b.Add("a"), b.Add("b")) }
	updated, err := p.Update(t.Context(), target, add, "Add")
	if err != nil || updated.ETag != `"2"` || updated.Version != 2 {
		t.Errorf("updated: %+v, %v", updated, err)
	}
	updated, err = p.Update(t.Context(), target, add, "Add")
	if err != nil || !updated.Replayed || updated.ETag != `"2"` {
		t.Errorf("updated again: %+v, %v", updated, err)
	}
	if _, err = p.Update(t.Context(), target, add, "AddOther"); !fault.Is(err, fault.Invalid) {
		t.Errorf("another request under the key: %v", err)
	}
	if _, err := p.Update(t.Context(), command.Target{ID: id, IfMatch: []string{`"1"`}}, add, "Add"); !fault.Is(err, fault.PreconditionFailed) {
		t.Errorf("an old ETag: %v", err)
	}
	if _, err := p.Update(t.Context(), command.Target{ID: uuid.New()}, add, "Add"); !fault.Is(err, fault.NotFound) {
		t.Errorf("no such basket: %v", err)
	}
	if _, err := p.Work.Begin("junk"); !fault.Is(err, fault.Invalid) {
		t.Errorf("an unknown session token: %v", err)
	}
	s.History(t, id, 3, 2)
	s.ordinals(t, id, 1, 1, 2)

	// One aggregate per unit of work: the state of a second one would not be checked.
	other, err := p.Create(t.Context(), Opening(""))
	must(t, err)
	work, err := p.Work.Begin("")
	must(t, err)
	_, err = work.Read(t.Context(), id, nil)
	must(t, err)
	if _, err := work.Read(t.Context(), other.Aggregate.ID(), nil); err == nil {
		t.Error("read a second basket in one unit of work")
	}
	if err := work.Add(t.Context(), other.Aggregate); err == nil {
		t.Error("added a second basket to one unit of work")
	}
	_, err = p.Update(t.Context(), command.Target{ID: other.Aggregate.ID()}, (*Basket).Drop)
	must(t, err)

	// A note without a change. An expired note does not count, even if it was not removed yet.
	short := Baskets(t, s.Store, &recordstore.Options{RequestTTL: time.Nanosecond})
	nothing := func(*Basket) error { return nil }
	for range 2 {
		updated, err := short.Update(t.Context(), command.Target{ID: id, Sender: command.Sender{IdempotencyKey: "three"}}, nothing, "Nothing")
		if err != nil || updated.Replayed || updated.Version != 2 {
			t.Errorf("under an expired key: %+v, %v", updated, err)
		}
	}
	updated, err = p.Update(t.Context(), command.Target{ID: id, Sender: command.Sender{IdempotencyKey: "three"}}, add, "Add")
	if err != nil || updated.Replayed || updated.ETag != `"3"` {
		t.Errorf("under an expired key, with a change: %+v, %v", updated, err)
	}
	s.read(t, p, id)
	s.audit(t, p)
	s.commitAgain(t, p)
	s.anothersNote(t, p)
	s.lostReadBack(t)
	s.olderTombstone(t)
}

// olderTombstone creates an id again. A writer that has read an older tombstone would repeat versions.
func (s Subject) olderTombstone(t *testing.T) {
	t.Helper()
	id := uuid.New()
	save := func(version int64, deleted bool) error {
		return s.Store.Save(t.Context(), &recordstore.Change{Type: "basket", EventTTL: time.Hour, Change: &unitofwork.Change{
			ID: id, After: unitofwork.State{Version: version}, Commit: aggregate.Commit{Sequence: version}, Data: []byte("{}"), Deleted: deleted, Recurs: true, DeletedTTL: time.Nanosecond,
		}})
	}
	must(t, save(5, true))
	for _, version := range []int64{4, 5} {
		if err := save(version, false); !errors.Is(err, recordstore.ErrExists) {
			t.Errorf("version %d after 5, which has expired: %v", version, err)
		}
	}
	must(t, save(6, false))
}

// audit reads a trail whose first entries have expired and may not be removed yet: the rest follows.
func (s Subject) audit(t *testing.T, p *command.Service[*Basket]) {
	t.Helper()
	short := Baskets(t, s.Store, &recordstore.Options{AuditTTL: time.Nanosecond})
	made, err := short.Create(t.Context(), Opening(""))
	must(t, err)
	id := made.Aggregate.ID()
	add := func(by *command.Service[*Basket]) {
		t.Helper()
		_, err := by.Update(t.Context(), command.Target{ID: id}, func(b *Basket) error { return b.Add("line") }, "Add")
		must(t, err)
	}
	for range 4 {
		add(short)
	}
	for range 3 {
		add(p)
	}
	var got []int64
	page := query.AuditPage{}
	for pages := 0; pages == 0 || page.Continuation != ""; pages++ {
		page, err = recordstore.AuditReader{Store: s.Store}.Audit(t.Context(), id, 2, page.Continuation, "")
		must(t, err)
		for _, e := range page.Entries {
			got = append(got, e.Version)
		}
	}
	if !slices.Equal(got, []int64{6, 7, 8}) {
		t.Errorf("the audit trail has the versions %d; want 6 to 8, which have not expired", got)
	}
}

// commitAgain changes a basket by several commits of one unit of work.
func (s Subject) commitAgain(t *testing.T, p *command.Service[*Basket]) {
	t.Helper()
	made, err := p.Create(t.Context(), Opening(""))
	must(t, err)
	work, err := p.Work.Begin("")
	must(t, err)
	b, err := work.Read(t.Context(), made.Aggregate.ID(), nil)
	must(t, err)
	for n := range 3 {
		must(t, b.Add("line"))
		if receipt, err := work.Commit(t.Context()); err != nil || receipt.ETag != fmt.Sprintf(`"%d"`, n+2) {
			t.Errorf("commit %d of a unit of work: %+v, %v", n+1, receipt, err)
		}
	}
	s.History(t, made.Aggregate.ID(), 4, 1) // only the first command has a note for the audit trail
}

// lostRequest is a store that loses the request of one Save, after which meanwhile runs.
type lostRequest struct {
	recordstore.Store
	meanwhile func()
}

var errLost = errors.New("the request was lost")

func (s *lostRequest) Save(ctx context.Context, c *recordstore.Change) error {
	if meanwhile := s.meanwhile; meanwhile != nil {
		s.meanwhile = nil
		meanwhile()
		return errLost
	}
	return s.Store.Save(ctx, c)
}

func (s *lostRequest) Ambiguous(err error) bool {
	return errors.Is(err, errLost) || s.Store.Ambiguous(err)
}

// anothersNote loses a request, and another one under the same key is stored before the next
// attempt. Its note is no evidence that the lost request was stored.
func (s Subject) anothersNote(t *testing.T, p *command.Service[*Basket]) {
	t.Helper()
	made, err := p.Create(t.Context(), Opening(""))
	must(t, err)
	target := command.Target{ID: made.Aggregate.ID(), Sender: command.Sender{IdempotencyKey: "same"}}
	late := Baskets(t, &lostRequest{s.Store, func() {
		_, err := p.Update(t.Context(), target, func(b *Basket) error { return b.Add("other") }, "Add", "other")
		must(t, err)
	}}, &recordstore.Options{Backoff: time.Millisecond})
	updated, err := late.Update(t.Context(), target, func(b *Basket) error { return b.Add("lost") }, "Add", "lost")
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("a lost request whose key another one has used: %+v, %v", updated, err)
	}
	s.History(t, target.ID, 2, 2)
}

// lostAnswers is a store that loses the answers of the first Save and of the first Saved.
type lostAnswers struct {
	lostRequest
	reads int
}

func (s *lostAnswers) Save(ctx context.Context, c *recordstore.Change) error {
	err := s.Store.Save(ctx, c)
	if meanwhile := s.meanwhile; meanwhile != nil {
		s.meanwhile = nil
		return errors.Join(errLost, err)
	}
	return err
}

func (s *lostAnswers) Saved(ctx context.Context, c *recordstore.Change) (own, current bool, err error) {
	if s.reads++; s.reads == 1 {
		return false, false, fault.Wrap(fault.Unavailable, "", "the store does not answer", errLost)
	}
	return s.Store.Saved(ctx, c)
}

// lostReadBack loses the answer of a commit, and that of the read that looks for it. The change is stored.
func (s Subject) lostReadBack(t *testing.T) {
	t.Helper()
	store := &lostAnswers{lostRequest: lostRequest{s.Store, func() {}}}
	made, err := Baskets(t, store, &recordstore.Options{Backoff: time.Millisecond}).Create(t.Context(), Opening(""))
	if err != nil || made.ETag != `"1"` || store.reads != 2 {
		t.Fatalf("%+v after %d reads, %v; want success after the second", made, store.reads, err)
	}
	s.History(t, made.Aggregate.ID(), 1, 1)
}

// read reads the basket id, which has four lines, and lists it with others.
func (s Subject) read(t *testing.T, p *command.Service[*Basket], id uuid.UUID) {
	t.Helper()
	reader := Reader(t, s.Store)
	found, err := reader.Read(t.Context(), id, "", "")
	if err != nil || found.ETag != `"3"` || len(found.State.State.Lines) != 4 || found.Deleted {
		t.Errorf("read: %+v, %v", found, err)
	}
	if _, err := reader.Read(t.Context(), id, `"3"`, ""); !fault.Is(err, fault.NotModified) {
		t.Errorf("read again: %v", err)
	}
	all := map[string]bool{id.String() + `"3"`: true}
	for range 6 {
		made, err := p.Create(t.Context(), Opening(""))
		must(t, err)
		all[made.Aggregate.ID().String()+`"1"`] = true
	}
	gone, err := p.Create(t.Context(), Opening(""))
	must(t, err)
	_, err = p.Update(t.Context(), command.Target{ID: gone.Aggregate.ID()}, (*Basket).Drop)
	must(t, err)
	page := query.Page[document.Listed[BasketState]]{}
	for pages := 0; pages == 0 || page.Continuation != ""; pages++ {
		page, err = reader.Page(t.Context(), 3, page.Continuation, "")
		must(t, err)
		for _, item := range page.Items {
			name := item.Root.ID.String() + item.ETag
			if !all[name] || len(page.Items) > 3 {
				t.Errorf("item %s of %d", name, len(page.Items))
			}
			delete(all, name)
		}
	}
	if len(all) > 0 {
		t.Errorf("not listed: %v", all)
	}
	if _, err := reader.Page(t.Context(), 3, "junk", ""); !fault.Is(err, fault.Invalid) {
		t.Errorf("an unknown continuation: %v", err)
	}
}

// ConcurrentWriters changes one aggregate from several writers: each change is made once, and
// none is lost.
func ConcurrentWriters(t *testing.T, s Subject) {
	t.Helper()
	p := Baskets(t, s.Store, nil)
	p.Audit = false // otherwise a lost race may fail on the audit entry of the version
	made, err := p.Create(t.Context(), Opening(""))
	must(t, err)
	var done atomic.Int64
	var group sync.WaitGroup
	for w := range 12 {
		group.Go(func() {
			for n := range 5 {
				_, err := p.Update(t.Context(), command.Target{ID: made.Aggregate.ID()}, func(b *Basket) error { return b.Add(fmt.Sprint(w, ".", n)) })
				if err == nil {
					done.Add(1)
				} else if !fault.Is(err, fault.Unavailable) {
					t.Errorf("writer %d: %v", w, err)
				}
			}
		})
	}
	group.Wait()
	s.History(t, made.Aggregate.ID(), int(done.Load())+1, 0)
	if done.Load() == 0 {
		t.Error("no change was made")
	}
}
