package postgres_test

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5/pgxpool"

	"feedbox/application/relay"
	"feedbox/infrastructure/store/postgres"
	"feedbox/infrastructure/store/recordstore/parked"
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
