package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/query"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/postgres"
	"feedbox/infrastructure/store/recordstore"
	"feedbox/infrastructure/store/recordstore/recordstoretest"
)

// Notes belong to the next commit. Later commits of the unit of work store only newer notes.
func TestNotesBelongToOneCommit(t *testing.T) {
	t.Parallel()
	db := open(t)
	p := baskets(t, db, nil)
	made, err := p.Create(t.Context(), recordstoretest.Opening(""))
	must(t, err)
	id := made.Aggregate.ID()
	work, err := p.Work.Begin("")
	must(t, err)
	b, err := work.Read(t.Context(), id, nil)
	must(t, err)
	note := func(request string, version int64) {
		t.Helper()
		must(t, work.NoteRequest(command.Request{ID: request, AggregateID: id, CommandID: uuid.New(), CreatedAt: time.Now(), Version: version}))
		must(t, work.NoteAudit(query.AuditEntry{AggregateID: id, Version: version, At: time.Now(), Principal: request}))
	}
	commit := func(lines ...string) {
		t.Helper()
		for _, line := range lines {
			must(t, b.Add(line))
		}
		_, err := work.Commit(t.Context())
		must(t, err)
	}
	note("two", 2)
	commit("a")
	commit("b")       // without notes
	note("three", 99) // of a commit that changes nothing, which has no version of its own
	commit()
	must(t, work.NoteAudit(query.AuditEntry{AggregateID: id, Version: 98, At: time.Now()}))
	commit()
	commit("c")
	note("five", 5)
	commit("d")
	audit := recordstore.AuditReader{Store: postgres.Records{DB: db}}
	var trail []int64
	page := query.AuditPage{}
	for pages := 0; pages == 0 || page.Continuation != ""; pages++ {
		page, err = audit.Audit(t.Context(), id, 2, page.Continuation, "")
		must(t, err)
		if len(page.Entries) > 2 {
			t.Errorf("%d entries on a page of 2", len(page.Entries))
		}
		for _, e := range page.Entries {
			trail = append(trail, e.Version)
		}
	}
	if fmt.Sprint(trail) != "[1 2 5]" {
		t.Errorf("the trail has the versions %v, want one of each commit that changed and noted something", trail)
	}

	// A note that has not expired refuses another one.
	note("two", 6)
	must(t, b.Add("e"))
	if _, err := work.Commit(t.Context()); !fault.Is(err, fault.Conflict) {
		t.Errorf("a request that was answered before: %v", err)
	}
}

// overtaken is a store that stores a change and loses the answer. Another change follows before the
// next attempt.
type overtaken struct {
	recordstore.Store
	meanwhile func()
}

var errLost = errors.New("the answer was lost")

func (s *overtaken) Save(ctx context.Context, c *recordstore.Change) error {
	err := s.Store.Save(ctx, c)
	if err == nil && s.meanwhile != nil {
		s.meanwhile()
		s.meanwhile, err = nil, errLost
	}
	return err
}

func (s *overtaken) Ambiguous(err error) bool {
	return errors.Is(err, errLost) || s.Store.Ambiguous(err)
}

// A client with a lost answer gets the result of its change, but no ETag of a version it has not
// seen.
func TestLostAnswerFollowedByAnotherWriterReturnsNoETag(t *testing.T) {
	t.Parallel()
	db := open(t)
	p := baskets(t, db, nil)
	made, err := p.Create(t.Context(), recordstoretest.Opening(""))
	must(t, err)
	id := made.Aggregate.ID()
	add := func(b *recordstoretest.Basket) error { return b.Add("x") }
	store := &overtaken{Store: postgres.Records{DB: db}, meanwhile: func() {
		_, err := p.Update(t.Context(), command.Target{ID: id}, add, "Add")
		must(t, err)
	}}
	w, err := recordstoretest.Baskets(t, store, nil).Work.Begin("")
	must(t, err)
	b, err := w.Read(t.Context(), id, nil)
	must(t, err)
	must(t, add(b))
	receipt, err := w.Commit(t.Context())
	if err != nil || receipt.ETag != "" {
		t.Errorf("receipt %+v, %v; want one without an ETag", receipt, err)
	}
	subject(db).History(t, id, 3, 2) // this one notes no audit entry
}

// A deleted aggregate is returned with its deletion mark.
func TestDeletedAggregateIsReadAsDeleted(t *testing.T) {
	t.Parallel()
	db := open(t)
	p := baskets(t, db, nil)
	made, err := p.Create(t.Context(), recordstoretest.Opening(""))
	must(t, err)
	id := made.Aggregate.ID()
	_, err = p.Update(t.Context(), command.Target{ID: id}, func(b *recordstoretest.Basket) error { return b.Drop() }, "Drop")
	must(t, err)
	reader := recordstoretest.Reader(t, postgres.Records{DB: db})
	found, err := reader.Read(t.Context(), id, "", "")
	if err != nil || !found.Deleted {
		t.Errorf("read %+v, %v; want it deleted", found, err)
	}
	if page, err := reader.Page(t.Context(), 10, "", ""); err != nil || len(page.Items) != 0 {
		t.Errorf("listed: %+v, %v", page, err)
	}
}
