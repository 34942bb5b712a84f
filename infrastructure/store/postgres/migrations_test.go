package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"feedbox/application/command"
	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/store/postgres"
	"feedbox/infrastructure/store/postgres/doctor"
	"feedbox/infrastructure/store/recordstore"
	"feedbox/infrastructure/store/recordstore/parked"
	"feedbox/infrastructure/store/recordstore/recordstoretest"
	"feedbox/infrastructure/store/unitofwork"
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

// withRoles returns a database whose processes have roles of their own, a pool of the owner, and the
// database as each role sees it.
func withRoles(t testing.TB) (owner *pgxpool.Pool, as map[string]*postgres.DB) {
	t.Helper()
	url := database(t)
	_, owner = openAt(t, url)
	createRoles(t, owner, "feedbox_api", "feedbox_relay")
	as = map[string]*postgres.DB{}
	for _, process := range []string{"api", "relay"} {
		db, err := postgres.Open(strings.Replace(url, "feedbox@", "feedbox_"+process+"@", 1), nil)
		must(t, err)
		t.Cleanup(db.Close)
		as[process] = db
	}
	return owner, as
}

// createRoles creates roles without rights in the database of owner. Roles belong to the server, so
// an earlier test may have created them.
func createRoles(t testing.TB, owner *pgxpool.Pool, names ...string) {
	t.Helper()
	for _, name := range names {
		_, err := owner.Exec(t.Context(), `DO $$ BEGIN CREATE ROLE `+name+` LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
			REVOKE pg_monitor FROM `+name)
		must(t, err)
	}
}

// work runs every kind of statement of a process.
var work = map[string]func(t *testing.T, db *postgres.DB, owner *pgxpool.Pool) error{
	"api": func(t *testing.T, db *postgres.DB, owner *pgxpool.Pool) error {
		baskets := recordstoretest.Baskets(t, postgres.Records{DB: db}, nil)
		baskets.Audit = true
		made, err := baskets.Create(t.Context(), recordstoretest.Opening(""))
		if err != nil {
			return err
		}
		id := made.Aggregate.ID()
		_, err = owner.Exec(t.Context(), `INSERT INTO requests (aggregate_id, id, hash, command_id, created_at, version, expires_at) VALUES ($1, 'r', '', $1, now(), 1, now())`, id)
		must(t, err)
		work, err := baskets.Work.Begin("")
		must(t, err)
		b, err := work.Read(t.Context(), id, nil)
		if err != nil {
			return err
		}
		must(t, b.Add("line"))
		must(t, work.NoteRequest(command.Request{ID: "r", AggregateID: id, CommandID: id, CreatedAt: time.Now()})) // replaces the expired one
		_, err = work.Commit(t.Context())
		_, err2 := (recordstore.AuditReader{Store: postgres.Records{DB: db}}).Audit(t.Context(), id, 2, "", "")
		_, err3 := work.FindRequest(t.Context(), id, "r")
		_, _, err4 := (postgres.Records{DB: db}).Saved(t.Context(), &recordstore.Change{Change: &unitofwork.Change{ID: id}}) // after a lost answer
		return errors.Join(err, err2, err3, err4, db.Verify(t.Context()))
	},
	"relay": func(t *testing.T, db *postgres.DB, owner *pgxpool.Pool) error {
		ctx, all := t.Context(), []error{}
		try := func(err error) { all = append(all, err) }
		_, err := owner.Exec(ctx, `DELETE FROM events; DELETE FROM leases; DELETE FROM gates; DELETE FROM parked; DELETE FROM consumer_gates; DELETE FROM consumer_parked`)
		must(t, err)
		_, err = owner.Exec(ctx, insertEvent, recordstore.Hash("k"), "k", "e", `{"a":1}`)
		must(t, err)
		records := postgres.Records{DB: db}
		read, err := records.Event(ctx, "k", "e")
		try(err)
		_, err = records.ReplaceEvent(ctx, "k", "e", read, []byte(`{"a":2}`))
		try(err)
		leases := postgres.Leases{DB: db}
		etag, err := leases.Create(ctx, changefeed.Record{ID: "l", Body: []byte(`{}`)})
		try(err)
		etag, err = leases.Replace(ctx, changefeed.Record{ID: "l", Body: []byte(`{}`), ETag: etag})
		try(err)
		try(leases.Delete(ctx, "l", etag))
		consumers, err := postgres.ParkedOf(db, "billing")
		must(t, err)
		for _, gates := range []parked.Records{postgres.Parked{DB: db}, consumers.Records} {
			g := parked.Gate{Key: "k", Data: []byte(`{}`)}
			g.Version, err = gates.Commit(ctx, &parked.Change{Gate: g, Put: []relay.ParkedEvent{{Key: "k", ID: "e", Document: []byte(`{}`)}, {Key: "k", ID: "f", Document: []byte(`{}`)}}})
			try(err)
			g.Version, err = gates.Commit(ctx, &parked.Change{Gate: g, Skipped: &relay.Skipped{Event: relay.ParkedEvent{Key: "k", ID: "e"}}})
			try(err)
			_, _, err = gates.Find(ctx, "k", []string{"f"})
			try(err)
			_, err = gates.Commit(ctx, &parked.Change{Gate: g, Remove: []string{"f"}, Open: true})
			try(err)
		}
		try(postgres.Upkeep{DB: db}.Sweep(ctx))
		_, err = db.Size(ctx)
		try(err)
		return errors.Join(append(all, db.Verify(ctx))...)
	},
}

// Each process works with its role, and with none of its rights taken away.
func TestEachProcessNeedsExactlyTheRightsOfItsRole(t *testing.T) {
	owner, as := withRoles(t)
	for process, db := range as {
		_, err := owner.Exec(t.Context(), postgres.Roles("feedbox"))
		must(t, err)
		must(t, db.Verify(t.Context()))
		must(t, work[process](t, db, owner))
		check := func(wantMissing, wantSurplus int) string {
			t.Helper()
			missing, surplus, err := db.Rights(t.Context(), process)
			must(t, err)
			if len(missing) != wantMissing || len(surplus) != wantSurplus {
				t.Errorf("%s: missing %v, surplus %v", process, missing, surplus)
			}
			return strings.Join(missing, "; ")
		}
		check(0, 0)
		rows, err := owner.Query(t.Context(), `SELECT format('%s ON %I FROM %I', privilege_type, table_name, grantee) FROM information_schema.role_table_grants WHERE grantee = $1
			UNION ALL SELECT 'USAGE ON SEQUENCE tags FROM feedbox_relay' WHERE $1 = 'feedbox_relay'`, "feedbox_"+process)
		must(t, err)
		each, err := pgx.CollectRows(rows, pgx.RowTo[string])
		must(t, err)
		if len(each) < 11 {
			t.Errorf("%s has only the rights %v", process, each)
		}
		for _, right := range each {
			_, err := owner.Exec(t.Context(), `REVOKE `+right)
			must(t, err)
			if err := work[process](t, db, owner); err == nil {
				t.Errorf("%s works without %s", process, right)
			}
			_, err = owner.Exec(t.Context(), check(1, 0)) // the doctor's advice
			must(t, err)
		}
		must(t, work[process](t, db, owner))
		_, err = owner.Exec(t.Context(), `GRANT TRUNCATE ON leases TO feedbox_`+process)
		must(t, err)
		check(0, 1)
		if err := db.Migrate(t.Context()); err != nil {
			t.Errorf("%s: a migration of a schema that is current: %v", process, err)
		}
	}
	if _, err := (postgres.Leases{DB: as["api"]}).List(t.Context(), ""); err == nil {
		t.Error("the API reads leases")
	}
}

// A role that lacks a right cannot work, whatever else it has.
func TestDoctorReportsLackingRightsBeforeNeedlessOnes(t *testing.T) {
	owner, as := withRoles(t)
	_, err := owner.Exec(t.Context(), postgres.Roles("feedbox"))
	must(t, err)
	examine := func() (found operator.Finding) {
		doctor.Doctor{DB: as["relay"]}.Examine(operator.ProcessRelay, func(e operator.Examination) bool {
			for _, f := range e(t.Context()) {
				if f.Check == "rights" {
					found = f
				}
			}
			return true
		})
		return found
	}
	if f := examine(); f.Status != operator.FindingOK {
		t.Errorf("the rights of the script: %+v", f)
	}
	for _, step := range []struct {
		change, next string
		want         operator.FindingStatus
	}{
		{`GRANT TRUNCATE ON leases TO feedbox_relay`, "feedbox migrate --print-roles", operator.FindingWarning},
		{`REVOKE DELETE ON parked FROM feedbox_relay`, "GRANT DELETE ON ", operator.FindingFailed},
	} {
		_, err := owner.Exec(t.Context(), step.change)
		must(t, err)
		if f := examine(); f.Status != step.want || !strings.Contains(f.Next, step.next) {
			t.Errorf("after %s: %+v, want %s", step.change, f, step.want)
		}
	}
}

func TestScriptOfTheRolesTakesNeedlessRightsAway(t *testing.T) {
	owner, as := withRoles(t)
	for range 2 {
		_, err := owner.Exec(t.Context(), postgres.Roles("feedbox"))
		must(t, err)
		if _, surplus, err := as["api"].Rights(t.Context(), "api"); err != nil || len(surplus) > 0 {
			t.Errorf("the API has %v, %v", surplus, err)
		}
		_, err = owner.Exec(t.Context(), `GRANT ALL ON ALL TABLES IN SCHEMA feedbox TO feedbox_api; GRANT ALL ON ALL SEQUENCES IN SCHEMA feedbox TO feedbox_api`)
		must(t, err)
	}
}

// psql runs the statements of a script one by one, also after a failed one. Roles must not have half of their rights then.
func TestScriptOfTheRolesGrantsAllOrNothing(t *testing.T) {
	owner, _ := withRoles(t)
	_, err := owner.Exec(t.Context(), `ALTER TABLE feedbox.requests RENAME TO renamed`)
	must(t, err)
	psql, err := owner.Acquire(t.Context())
	must(t, err)
	defer psql.Release()
	failed, granted := 0, 0
	for statement := range strings.SplitAfterSeq(postgres.Roles("feedbox"), ";\n") {
		if _, err := psql.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			failed++
		}
	}
	must(t, psql.QueryRow(t.Context(), `SELECT count(*) FROM information_schema.role_table_grants WHERE grantee LIKE 'feedbox\_%'`).Scan(&granted))
	if failed == 0 || granted > 0 {
		t.Errorf("%d statements failed, and the roles have %d rights", failed, granted)
	}
}

// Every table and sequence is used by a process. A migration that adds one must say by which.
func TestEveryTableBelongsToARole(t *testing.T) {
	owner, _ := withRoles(t)
	rows, err := owner.Query(t.Context(), `SELECT relname FROM pg_class WHERE relnamespace = 'feedbox'::regnamespace AND relkind IN ('r', 'S', 'p', 'v')`)
	must(t, err)
	objects, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	for _, object := range objects {
		// Only the function emit uses keys, with the rights of its owner.
		if object != "keys" && !strings.Contains(postgres.Roles("feedbox"), `"feedbox".`+object+" TO ") {
			t.Errorf("no role may use %s", object)
		}
	}
}

// A role without pg_monitor does not see since when others' transactions are open.
func TestHolderOfTheFeedIsNamedForARoleWithoutMonitor(t *testing.T) {
	pool, as := withRoles(t)
	db := as["relay"]
	if err := db.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "feedbox migrate --print-roles") {
		t.Fatalf("without rights: %v", err)
	}
	_, err := pool.Exec(t.Context(), postgres.Roles("feedbox"))
	must(t, err)
	holder, err := pool.Begin(t.Context())
	must(t, err)
	defer func() { must(t, holder.Rollback(context.WithoutCancel(t.Context()))) }()
	var pid int
	must(t, holder.QueryRow(t.Context(), `SELECT pg_backend_pid() FROM pg_current_xact_id()`).Scan(&pid))
	younger, err := pool.Begin(t.Context())
	must(t, err)
	defer func() { must(t, younger.Rollback(context.WithoutCancel(t.Context()))) }()
	_, err = younger.Exec(t.Context(), `SELECT pg_current_xact_id()`)
	must(t, err)
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
	_, err = pool.Exec(t.Context(), `GRANT pg_monitor TO feedbox_relay`)
	must(t, err)
	if found := oldest(); found.AtLeast || found.Age < 20*time.Millisecond {
		t.Errorf("with pg_monitor: %+v", found)
	}
}

// A statement_timeout of the role is for its queries. A migration may wait for another one, and build an
// index for longer.
func TestMigrationIsNotBoundByTheStatementTimeoutOfTheRole(t *testing.T) {
	t.Parallel()
	url := database(t)
	unlimited, err := pgxpool.ParseConfig(url)
	must(t, err)
	unlimited.ConnConfig.RuntimeParams["statement_timeout"] = "0"
	pool, err := pgxpool.NewWithConfig(t.Context(), unlimited)
	must(t, err)
	defer pool.Close()
	_, err = pool.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = 1000', current_database()); END $$`)
	must(t, err)
	other, err := pool.Begin(t.Context())
	must(t, err)
	defer func() { _ = other.Rollback(context.Background()) }()
	_, err = other.Exec(t.Context(), `SELECT pg_advisory_xact_lock(hashtextextended('feedbox "feedbox"', 0))`) // as another migration
	must(t, err)
	db, err := postgres.Open(url, nil)
	must(t, err)
	defer db.Close()
	done := make(chan error, 1)
	go func() { done <- db.Migrate(t.Context()) }()
	within(t, "the migration waits for longer than the limit", func() (waits bool) {
		must(t, pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = current_database() AND query_start < clock_timestamp() - interval '1500 ms')`).Scan(&waits))
		return waits || len(done) > 0
	})
	must(t, other.Rollback(t.Context()))
	must(t, <-done)
}
