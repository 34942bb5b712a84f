package postgres_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5/pgxpool"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/store/postgres"
	"feedbox/infrastructure/store/recordstore/parked"
	"feedbox/infrastructure/store/recordstore/recordstoretest"
)

// A database with parked keys is migrated from version 1, in which gates had columns in place of a
// document. The gates keep their values and can be changed.
func TestMigrationKeepsGatesOfVersion1(t *testing.T) {
	t.Parallel()
	url := database(t)
	pool, err := pgxpool.New(t.Context(), url+"&search_path=feedbox")
	must(t, err)
	t.Cleanup(pool.Close)
	first, err := os.ReadFile("migrations/0001_outbox.sql")
	must(t, err)
	_, err = pool.Exec(t.Context(), `CREATE SCHEMA feedbox; CREATE TABLE feedbox.schema_version (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());
		INSERT INTO feedbox.schema_version (version) VALUES (1); SET TimeZone = 'Asia/Kolkata';`+string(first))
	must(t, err)
	at := time.Date(2026, 3, 1, 12, 0, 0, 123456e3, time.UTC)
	want := []relay.Gate{
		{
			Key: "a \"key\"", Closing: relay.Closing{Event: "e1", Reason: "too_large", Error: "too large\nby far", At: at}, Progress: relay.Progress{Sequence: 7, LSN: 1 << 40},
			Events: 3, Arrivals: 9, Sequence: 12, Intent: &relay.Intent{Verb: relay.VerbSkip, Event: "e1", By: "ann", Note: "known", At: at, FromStore: true},
			Attempts: 4, Error: "it failed", TriedAt: at.Add(time.Minute),
		},
		{Key: "b", Closing: relay.Closing{Event: "e2", Reason: "busy", At: at.Add(time.Hour), Auto: true}, Events: 1, Arrivals: 1},
	}
	closings := []string{
		`{"event":"e1","reason":"too_large","error":"too large\nby far","at":"2026-03-01T12:00:00.123456Z"}`,
		`{"event":"e2","reason":"busy","at":"2026-03-01T13:00:00.123456Z","auto":true}`,
	}
	for i, g := range want {
		var intent *string
		var tried *time.Time
		if g.Intent != nil {
			text := `{"verb":"skip","event":"e1","by":"ann","note":"known","at":"2026-03-01T12:00:00.123456Z","fromStore":true}`
			intent, tried = &text, &g.TriedAt
		}
		_, err := pool.Exec(t.Context(), `INSERT INTO gates (key, closing, wanted, intent, progress_sequence, progress_lsn, events, last, sequence, attempts, error, tried_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`, g.Key, closings[i], g.EffectiveIntent() != nil, intent, g.Progress.Sequence, g.Progress.LSN, g.Events, g.Arrivals, g.Sequence, g.Attempts, g.Error, tried)
		must(t, err)
	}
	db, err := postgres.Open(url+"&timezone=Asia/Kolkata", nil)
	must(t, err)
	t.Cleanup(db.Close)
	must(t, db.Migrate(t.Context()))
	must(t, db.Verify(t.Context()))
	store := parked.Store{Records: postgres.Parked{DB: db}}
	check := func(read func() ([]relay.Gate, error)) []relay.Gate {
		t.Helper()
		gates, err := read()
		must(t, err)
		if diff := cmp.Diff(want, gates, cmpopts.IgnoreFields(relay.Gate{}, "Version"), cmpopts.EquateApproxTime(0)); diff != "" {
			t.Errorf("gates (-want +got):\n%s", diff)
		}
		return gates
	}
	check(func() ([]relay.Gate, error) { return store.Intents(t.Context()) })
	for _, g := range check(func() ([]relay.Gate, error) { return store.Gates(t.Context()) }) {
		_, err := store.Update(t.Context(), g)
		must(t, err)
	}
	check(func() ([]relay.Gate, error) { return store.Gates(t.Context()) })
}

// role creates a role and returns the URL for it.
func role(t testing.TB, pool *pgxpool.Pool, url, name string) string {
	t.Helper()
	_, err := pool.Exec(t.Context(), `CREATE ROLE `+name+` LOGIN`)
	must(t, err)
	return strings.Replace(url, "feedbox@", name+"@", 1)
}

func TestGrantsSufficeForARoleWithoutOwnership(t *testing.T) {
	url := database(t)
	owner, pool := openAt(t, url)
	db, err := postgres.Open(role(t, pool, url, "lean"), nil)
	must(t, err)
	t.Cleanup(db.Close)
	if err := db.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), owner.Grants("lean")) {
		t.Fatalf("without rights: %v", err)
	}
	_, err = pool.Exec(t.Context(), owner.Grants("lean"))
	must(t, err)
	must(t, db.Verify(t.Context()))
	must(t, db.Migrate(t.Context()))
	must(t, postgres.Upkeep{DB: db}.Sweep(t.Context()))
	_, err = postgres.Leases{DB: db}.Create(t.Context(), changefeed.Record{ID: "l", Body: []byte(`{}`)})
	must(t, err)
	_, err = baskets(t, db, nil).Create(t.Context(), recordstoretest.Opening("one"))
	must(t, err)
	_, err = db.Size(t.Context())
	must(t, err)
}

// A role without pg_monitor does not see since when others' transactions are open.
func TestHolderOfTheFeedIsNamedForARoleWithoutMonitor(t *testing.T) {
	url := database(t)
	owner, pool := openAt(t, url)
	db, err := postgres.Open(role(t, pool, url, "plain"), nil)
	must(t, err)
	t.Cleanup(db.Close)
	_, err = pool.Exec(t.Context(), owner.Grants("plain"))
	must(t, err)
	holder, err := pool.Begin(t.Context())
	must(t, err)
	defer func() { must(t, holder.Rollback(context.WithoutCancel(t.Context()))) }()
	var pid int
	must(t, holder.QueryRow(t.Context(), `SELECT pg_backend_pid() FROM pg_current_xact_id()`).Scan(&pid))
	oldest := func() postgres.Transaction {
		t.Helper()
		found, err := db.OldestTransaction(t.Context())
		must(t, err)
		if !strings.Contains(found.Who, fmt.Sprintf("process %d, user feedbox", pid)) || !strings.Contains(found.End, fmt.Sprint(pid)) {
			t.Errorf("process %d is reported as %+v", pid, found)
		}
		return found
	}
	if found := oldest(); !found.AtLeast || found.Age != 0 {
		t.Errorf("an unknown age is reported as %+v", found)
	}
	_, err = pool.Exec(t.Context(), insertEvent, 1, "k", "e", `{}`)
	must(t, err)
	time.Sleep(20 * time.Millisecond)
	if found := oldest(); !found.AtLeast || found.Age < 20*time.Millisecond || found.Age > time.Hour {
		t.Errorf("after an event that is held back for 20 ms: %+v", found)
	}
	_, err = pool.Exec(t.Context(), `GRANT pg_monitor TO plain`)
	must(t, err)
	if found := oldest(); found.AtLeast || found.Age < 20*time.Millisecond {
		t.Errorf("with pg_monitor: %+v", found)
	}
}
