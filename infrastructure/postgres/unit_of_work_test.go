package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"feedbox/application/command"
	"feedbox/application/query"
	"feedbox/domain/fault"
	"feedbox/infrastructure/document"
	"feedbox/infrastructure/postgres"
	"feedbox/infrastructure/rows"
)

// history checks that the events of id have the sequences 1 to n, and that there is an
// audit entry for each of the versions.
func history(t *testing.T, db *postgres.DB, id uuid.UUID, n, versions int) {
	t.Helper()
	events, err := postgres.Events{DB: db, Decoder: document.EventDecoder{}}.OfKey(t.Context(), id.String())
	must(t, err)
	for i, e := range events {
		if e.Sequence != int64(i+1) {
			t.Errorf("event %d has the sequence %d", i, e.Sequence)
		}
	}
	page, err := rows.AuditReader{Store: postgres.Rows{DB: db}}.Audit(t.Context(), id, 100, "", "")
	must(t, err)
	if len(events) != n || len(page.Entries) != versions {
		t.Errorf("%d events and %d audit entries; want %d and %d", len(events), len(page.Entries), n, versions)
	}
}

func TestAUnitOfWork(t *testing.T) {
	db, pool := openAt(t, database(t))
	p := baskets(t, db, nil)
	made, err := p.Create(t.Context(), opening("one"))
	must(t, err)
	id := made.Aggregate.ID()
	if made.ETag != `"1"` || made.Replayed || made.SessionToken != "" {
		t.Errorf("created: %+v", made)
	}
	again, err := p.Create(t.Context(), opening("one"))
	if err != nil || !again.Replayed || again.Aggregate.ID() != id || again.ETag != `"1"` {
		t.Errorf("repeated: %+v, %v", again, err)
	}
	target := command.Target{ID: id, IfMatch: []string{`"1"`}, Sender: command.Sender{IdempotencyKey: "two"}}
	add := func(b *basket) error { return errors.Join(b.add("a"), b.add("b")) }
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
		t.Errorf("a session token of nobody's: %v", err)
	}
	history(t, db, id, 3, 2)

	// A note that has expired is no note, also while it is still there.
	_, err = pool.Exec(t.Context(), `UPDATE requests SET expires_at = now() - interval '1 s'`)
	must(t, err)
	if updated, err = p.Update(t.Context(), command.Target{ID: id, Sender: command.Sender{IdempotencyKey: "two"}}, add, "Add"); err != nil || updated.Replayed || updated.Version != 3 {
		t.Errorf("under a key that is forgotten: %+v, %v", updated, err)
	}

	reader, err := rows.NewReader(postgres.Rows{DB: db}, rows.View[document.Stored[basketState], string]{
		Type: "basket", Decode: func(data []byte) (document.Stored[basketState], uuid.UUID, bool, error) {
			s, err := document.DecodeStored[basketState](data)
			return s, s.Root.ID, s.Root.Deleted, err
		},
		Item: func(s document.Stored[basketState], etag string) string { return s.Root.ID.String() + etag },
	})
	must(t, err)
	found, err := reader.Read(t.Context(), id, "", "")
	if err != nil || found.ETag != `"3"` || len(found.State.State.Lines) != 4 || found.Deleted {
		t.Errorf("read: %+v, %v", found, err)
	}
	if _, err := reader.Read(t.Context(), id, `"3"`, ""); !fault.Is(err, fault.NotModified) {
		t.Errorf("read again: %v", err)
	}
	all := map[string]bool{id.String() + `"3"`: true}
	for range 6 {
		made, err := p.Create(t.Context(), opening(""))
		must(t, err)
		all[made.Aggregate.ID().String()+`"1"`] = true
	}
	page := query.Page[string]{}
	for pages := 0; pages == 0 || page.Continuation != ""; pages++ {
		page, err = reader.Page(t.Context(), 3, page.Continuation, "")
		must(t, err)
		for _, item := range page.Items {
			if !all[item] || len(page.Items) > 3 {
				t.Errorf("item %s of %d", item, len(page.Items))
			}
			delete(all, item)
		}
	}
	if len(all) > 0 {
		t.Errorf("not listed: %v", all)
	}
	if _, err := reader.Page(t.Context(), 3, "junk", ""); !fault.Is(err, fault.Invalid) {
		t.Errorf("a continuation of nobody's: %v", err)
	}
}

// A deleted aggregate whose id can come again leaves version and sequence, and nothing else.
func TestADeletedAggregateIsContinued(t *testing.T) {
	db, pool := openAt(t, database(t))
	p := baskets(t, db, nil)
	made, err := p.Create(t.Context(), opening("one"))
	must(t, err)
	id := made.Aggregate.ID()
	_, err = p.Update(t.Context(), command.Target{ID: id}, (*basket).drop)
	must(t, err)
	if _, err := p.Create(t.Context(), opening("one")); !fault.Is(err, fault.Gone) {
		t.Errorf("while the deleted one is kept: %v", err)
	}
	_, err = pool.Exec(t.Context(), `UPDATE aggregates SET expires_at = now() - interval '1 s' WHERE deleted`)
	must(t, err)
	for _, swept := range []bool{true, false} {
		if swept {
			must(t, postgres.Upkeep{DB: db}.Sweep(t.Context()))
			var data string
			must(t, pool.QueryRow(t.Context(), `SELECT data FROM aggregates WHERE id = $1`, id).Scan(&data))
			if data != "" {
				t.Errorf("a tombstone holds %s", data)
			}
		}
		if _, err := p.Update(t.Context(), command.Target{ID: id}, (*basket).drop); !fault.Is(err, fault.NotFound) {
			t.Errorf("what has expired is there: %v", err)
		}
		made, err = p.Create(t.Context(), opening("one"))
		if err != nil || made.Replayed || made.Aggregate.Version()%2 == 0 {
			t.Fatalf("made again: %+v, %v", made, err)
		}
		_, err = p.Update(t.Context(), command.Target{ID: id}, (*basket).drop)
		must(t, err)
		_, err = pool.Exec(t.Context(), `UPDATE aggregates SET expires_at = now() - interval '1 s' WHERE deleted`)
		must(t, err)
	}
	history(t, db, id, 6, 6)
}

// Writers of one aggregate at the same time: each change is made once, and none is lost.
func TestConcurrentWriters(t *testing.T) {
	db := open(t)
	p := baskets(t, db, nil)
	made, err := p.Create(t.Context(), opening(""))
	must(t, err)
	var done atomic.Int64
	var group sync.WaitGroup
	for w := range 12 {
		group.Go(func() {
			for n := range 5 {
				_, err := p.Update(t.Context(), command.Target{ID: made.Aggregate.ID()}, func(b *basket) error { return b.add(fmt.Sprint(w, ".", n)) })
				if err == nil {
					done.Add(1)
				} else if !fault.Is(err, fault.Unavailable) {
					t.Errorf("writer %d: %v", w, err)
				}
			}
		})
	}
	group.Wait()
	history(t, db, made.Aggregate.ID(), int(done.Load())+1, int(done.Load())+1)
	if done.Load() < 40 {
		t.Errorf("%d of 60 changes were made", done.Load())
	}
}

// cut is a network that loses the answers to some requests, or the requests.
type cut struct{ answers, requests atomic.Int64 }

type cutConn struct {
	net.Conn
	by *cut
}

func (c *cut) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	return &cutConn{conn, c}, err
}

func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.by.answers.Load() > 0 && c.by.answers.Add(-1) >= 0 {
		_ = c.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *cutConn) Write(b []byte) (int, error) {
	if c.by.requests.Load() > 0 && c.by.requests.Add(-1) >= 0 {
		_ = c.Close()
		return len(b), nil // it left, and nobody knows where to
	}
	return c.Conn.Write(b)
}

// The answer to a commit is lost: what became of it is found out, and it is made once.
func TestLostAnswersOfACommit(t *testing.T) {
	url := database(t)
	db, _ := openAt(t, url)
	network := &cut{}
	shaky, err := postgres.Open(url, &postgres.DBOptions{Dial: network.dial})
	must(t, err)
	defer shaky.Close()
	p := baskets(t, shaky, &rows.Options{Backoff: time.Millisecond, Attempts: 5})
	for name, lose := range map[string]*atomic.Int64{"answer": &network.answers, "request": &network.requests} {
		made, err := p.Create(t.Context(), opening(""))
		must(t, err)
		id := made.Aggregate.ID()
		for n := range 10 {
			updated, err := p.Update(t.Context(), command.Target{ID: id, Sender: command.Sender{IdempotencyKey: fmt.Sprint(name, n)}}, func(b *basket) error {
				err := b.add(fmt.Sprint(n))
				lose.Store(1) // of the commit, which comes next
				return err
			}, "Add", n)
			if err != nil || updated.Replayed || updated.ETag != fmt.Sprintf(`"%d"`, n+2) {
				t.Fatalf("the %s to change %d was lost: %+v, %v", name, n, updated, err)
			}
		}
		history(t, db, id, 11, 11)
	}
	// One that never comes through is unknown, not done and not refused.
	made, err := p.Create(t.Context(), opening(""))
	must(t, err)
	_, err = p.Update(t.Context(), command.Target{ID: made.Aggregate.ID()}, func(b *basket) error {
		network.answers.Store(1000)
		return b.add("x")
	})
	network.answers.Store(0)
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != rows.CodeOutcomeUnknown {
		t.Errorf("no answer comes: %v", err)
	}
}

// Events, aggregate, note and audit entry are stored together or not at all.
func TestACommitIsOneTransaction(t *testing.T) {
	db, pool := openAt(t, database(t))
	p := baskets(t, db, nil)
	made, err := p.Create(t.Context(), opening(""))
	must(t, err)
	id := made.Aggregate.ID()
	for _, table := range []string{"events", "audits", "requests"} {
		_, err = pool.Exec(t.Context(), `ALTER TABLE `+table+` ADD CONSTRAINT refused CHECK (false) NOT VALID`)
		must(t, err)
		if _, err := p.Update(t.Context(), command.Target{ID: id, Sender: command.Sender{IdempotencyKey: table}}, func(b *basket) error { return b.add(table) }, table); err == nil {
			t.Errorf("committed although %s refuse", table)
		}
		_, err = pool.Exec(t.Context(), `ALTER TABLE `+table+` DROP CONSTRAINT refused`)
		must(t, err)
		history(t, db, id, 1, 1)
		if version := versionOf(t, pool, id); version != 1 {
			t.Errorf("the aggregate has version %d although %s refused", version, table)
		}
	}
}

func versionOf(t *testing.T, pool *pgxpool.Pool, id uuid.UUID) (version int64) {
	t.Helper()
	must(t, pool.QueryRow(t.Context(), `SELECT version FROM aggregates WHERE id = $1`, id).Scan(&version))
	return version
}
