package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"feedbox/application/command"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/postgres"
	"feedbox/infrastructure/store/recordstore"
	"feedbox/infrastructure/store/recordstore/recordstoretest"
	"feedbox/tests/servers"
)

func subject(db *postgres.DB) recordstoretest.Subject {
	return recordstoretest.Subject{Store: postgres.Records{DB: db}}
}

func baskets(t *testing.T, db *postgres.DB, o *recordstore.Options) *command.Service[*recordstoretest.Basket] {
	t.Helper()
	return recordstoretest.Baskets(t, postgres.Records{DB: db}, o)
}

func TestStoredEvents(t *testing.T) {
	t.Parallel()
	recordstoretest.Events(t, subject(open(t)))
}

func TestUnitOfWork(t *testing.T) {
	t.Parallel()
	recordstoretest.UnitOfWork(t, subject(open(t)))
}

// A deleted aggregate whose id may be used again leaves only its version and sequence.
func TestDeletedAggregateIsContinued(t *testing.T) {
	t.Parallel()
	db, pool := openAt(t, database(t))
	p := baskets(t, db, nil)
	made, err := p.Create(t.Context(), recordstoretest.Opening("one"))
	must(t, err)
	id := made.Aggregate.ID()
	_, err = p.Update(t.Context(), command.Target{ID: id}, (*recordstoretest.Basket).Drop)
	must(t, err)
	if _, err := p.Create(t.Context(), recordstoretest.Opening("one")); !fault.Is(err, fault.Gone) {
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
		if _, err := p.Update(t.Context(), command.Target{ID: id}, (*recordstoretest.Basket).Drop); !fault.Is(err, fault.NotFound) {
			t.Errorf("what has expired is there: %v", err)
		}
		made, err = p.Create(t.Context(), recordstoretest.Opening("one"))
		if err != nil || made.Replayed || made.Aggregate.Version()%2 == 0 {
			t.Fatalf("made again: %+v, %v", made, err)
		}
		_, err = p.Update(t.Context(), command.Target{ID: id}, (*recordstoretest.Basket).Drop)
		must(t, err)
		_, err = pool.Exec(t.Context(), `UPDATE aggregates SET expires_at = now() - interval '1 s' WHERE deleted`)
		must(t, err)
	}
	subject(db).History(t, id, 6, 6)
}

func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	recordstoretest.ConcurrentWriters(t, subject(open(t)))
}

// cut is a network that loses some requests or their answers.
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
		return len(b), nil // as if the network lost it
	}
	return c.Conn.Write(b)
}

// If the answer to a commit is lost, its outcome is resolved, and the change is made once.
func TestLostAnswersOfACommitAreResolved(t *testing.T) {
	t.Parallel()
	url := database(t)
	db, _ := openAt(t, url)
	network := &cut{}
	shaky, err := postgres.Open(url, &postgres.DBOptions{Dial: network.dial})
	must(t, err)
	defer shaky.Close()
	p := baskets(t, shaky, &recordstore.Options{Backoff: time.Millisecond, Attempts: 5})
	for name, lose := range map[string]*atomic.Int64{"answer": &network.answers, "request": &network.requests} {
		made, err := p.Create(t.Context(), recordstoretest.Opening(""))
		must(t, err)
		id := made.Aggregate.ID()
		for n := range 10 {
			updated, err := p.Update(t.Context(), command.Target{ID: id, Sender: command.Sender{IdempotencyKey: fmt.Sprint(name, n)}}, func(b *recordstoretest.Basket) error {
				err := b.Add(fmt.Sprint(n))
				lose.Store(1) // of the commit, which comes next
				return err
			}, "Add", n)
			if err != nil || updated.Replayed || updated.ETag != fmt.Sprintf(`"%d"`, n+2) {
				t.Fatalf("the %s to change %d was lost: %+v, %v", name, n, updated, err)
			}
		}
		subject(db).History(t, id, 11, 11)
	}
	// If no attempt gets an answer, the outcome is unknown.
	made, err := p.Create(t.Context(), recordstoretest.Opening(""))
	must(t, err)
	_, err = p.Update(t.Context(), command.Target{ID: made.Aggregate.ID()}, func(b *recordstoretest.Basket) error {
		network.answers.Store(1000)
		return b.Add("x")
	})
	network.answers.Store(0)
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != recordstore.CodeOutcomeUnknown {
		t.Errorf("no answer comes: %v", err)
	}
}

// A server that is shut down while a commit waits for a replica has stored the commit. It answers
// with a condition, which must not count as a refusal.
func TestCommitOfAServerThatShutsDownIsResolved(t *testing.T) {
	t.Parallel()
	for code, unknown := range map[string]bool{"57P01": true, "57P02": true, "57P03": false, "57014": false, "40001": false, "08006": true} {
		if got := (postgres.Records{}).Ambiguous(fmt.Errorf("save: %w", &pgconn.PgError{Code: code})); got != unknown {
			t.Errorf("condition %s: outcome unknown %t, want %t", code, got, unknown)
		}
	}
	db, pool := openAt(t, servers.StartPostgres(t).Database(t))
	p := baskets(t, db, &recordstore.Options{Backoff: time.Millisecond, Attempts: 10})
	made, err := p.Create(t.Context(), recordstoretest.Opening(""))
	must(t, err)
	replica := func(name string) {
		for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '" + name + "'", "SELECT pg_reload_conf()"} {
			_, err := pool.Exec(t.Context(), statement)
			must(t, err)
		}
	}
	replica("absent")
	var terminated atomic.Bool
	var changes int64
	ended := make(chan error, 1)
	go func() { // several, because the server reads the setting some time later
		for last := false; !last; changes++ {
			last = terminated.Load()
			updated, err := p.Update(t.Context(), command.Target{ID: made.Aggregate.ID()}, func(b *recordstoretest.Basket) error { return b.Add("x") })
			if err != nil || updated.Version != changes+2 {
				ended <- fmt.Errorf("change %d: version %d, %w", changes, updated.Version, err)
				return
			}
		}
		ended <- nil
	}()
	var waiting []int32
	within(t, "a commit waits for the replica", func() bool {
		must(t, pool.QueryRow(t.Context(), `SELECT coalesce(array_agg(pid) FILTER (WHERE pg_terminate_backend(pid)), '{}') FROM pg_stat_activity WHERE wait_event = 'SyncRep'`).Scan(&waiting))
		terminated.Store(len(waiting) > 0)
		return len(waiting) > 0
	})
	within(t, "the server ends its connection", func() (ended bool) { // else it could answer after the next setting, and end then
		must(t, pool.QueryRow(t.Context(), `SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = ANY($1))`, waiting).Scan(&ended))
		return ended
	})
	replica("")
	must(t, <-ended)
	subject(db).History(t, made.Aggregate.ID(), int(changes)+1, int(changes)+1)
}

// A limit of the database ends a commit that waits for a row, and a server that is being replaced accepts reads
// only. That says nothing about the change, so it is attempted again and is never an internal error.
func TestLimitsOfTheDatabaseOnlyDelayACommit(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{"lock_timeout = 50": "55P03", "statement_timeout = 50": "57014", "default_transaction_read_only = on": "25006"} {
		url := database(t)
		db, pool := openAt(t, url)
		made, err := baskets(t, db, nil).Create(t.Context(), recordstoretest.Opening(""))
		must(t, err)
		_, err = pool.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET `+setting+`', current_database()); END $$`)
		must(t, err)
		var dials atomic.Int32
		limited, err := postgres.Open(url, &postgres.DBOptions{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			dials.Add(1)
			return new(net.Dialer).DialContext(ctx, network, address)
		}})
		must(t, err)
		defer limited.Close()
		holder, err := pool.Begin(t.Context())
		must(t, err)
		_, err = holder.Exec(t.Context(), `SELECT FROM aggregates WHERE id = $1 FOR UPDATE`, made.Aggregate.ID())
		must(t, err)
		_, err = baskets(t, limited, &recordstore.Options{Backoff: time.Millisecond, Attempts: 2}).Update(t.Context(), command.Target{ID: made.Aggregate.ID()}, func(b *recordstoretest.Basket) error { return b.Add("x") })
		if reply, ok := errors.AsType[*pgconn.PgError](err); !ok || reply.Code != want || !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v, want unavailable by condition %s", setting, err, want)
		}
		if n := dials.Load(); n > 2 { // one of them asks for a pooler; a primary is no standby, and its connections stay
			t.Errorf("%s: %d connections, want 2", setting, n)
		}
		must(t, holder.Rollback(t.Context()))
	}
}

// Events, aggregate, note and audit entry are stored together or not at all.
func TestCommitIsOneTransaction(t *testing.T) {
	t.Parallel()
	db, pool := openAt(t, database(t))
	p := baskets(t, db, nil)
	made, err := p.Create(t.Context(), recordstoretest.Opening(""))
	must(t, err)
	id := made.Aggregate.ID()
	for _, table := range []string{"events", "audits", "requests"} {
		_, err = pool.Exec(t.Context(), `ALTER TABLE `+table+` ADD CONSTRAINT refused CHECK (false) NOT VALID`)
		must(t, err)
		if _, err := p.Update(t.Context(), command.Target{ID: id, Sender: command.Sender{IdempotencyKey: table}}, func(b *recordstoretest.Basket) error { return b.Add(table) }, table); err == nil {
			t.Errorf("committed although %s refuse", table)
		}
		_, err = pool.Exec(t.Context(), `ALTER TABLE `+table+` DROP CONSTRAINT refused`)
		must(t, err)
		subject(db).History(t, id, 1, 1)
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
