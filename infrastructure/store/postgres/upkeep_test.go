package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"feedbox/changefeed"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/store/postgres"
	"feedbox/infrastructure/store/postgres/doctor"
)

// storeExpiring stores n events in one transaction, whose id it returns. Their hashes begin at first.
// expires is an SQL expression.
func storeExpiring(t testing.TB, pool *pgxpool.Pool, first, n int, expires string) (xid uint64) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `INSERT INTO events (hash, key, id, document, expires_at) SELECT n, 'k', n::text, '{}', `+expires+` FROM generate_series($1::int, $2::int) n`, first, first+n-1)
	must(t, err)
	must(t, pool.QueryRow(t.Context(), `SELECT xid FROM events WHERE hash = $1`, first).Scan(&xid))
	return xid
}

const (
	expired = `now() - interval '1 s'`
)

// lease stores a lease with a checkpoint, or replaces it.
func lease(t testing.TB, db *postgres.DB, processor string, r changefeed.FeedRange, position any, properties string) {
	t.Helper()
	id := processor + "postgres_db_feedbox.." + r.String()
	record := changefeed.Record{ID: id, Body: fmt.Appendf(nil, `{"id":%q,"version":1,"FeedRange":{"Range":{"min":%q,"max":%q}},"Owner":null,"ContinuationToken":"\"%v\"","properties":{%s}}`, id, r.Min, r.Max, position, properties)}
	leases := postgres.Leases{DB: db}
	if old, err := leases.Read(t.Context(), id); err == nil {
		must(t, leases.Delete(t.Context(), id, old.ETag))
	}
	_, err := leases.Create(t.Context(), record)
	must(t, err)
}

// sweep returns the number of events that a sweep leaves.
func sweep(t testing.TB, db *postgres.DB, pool *pgxpool.Pool) (left int) {
	t.Helper()
	must(t, postgres.Upkeep{DB: db}.Sweep(t.Context()))
	must(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM events`).Scan(&left))
	return left
}

func TestSweepKeepsEventsThatAProcessorHasYetToHandle(t *testing.T) {
	t.Parallel()
	db, pool := openAt(t, database(t))
	const half = 1 << 29
	lower, upper := changefeed.FeedRange{Max: "20000000"}, changefeed.FeedRange{Min: "20000000", Max: "FF"}
	first := storeExpiring(t, pool, 0, 10, expired)
	second := storeExpiring(t, pool, 100, 10, expired)
	other := storeExpiring(t, pool, half, 10, expired)
	want := func(left int, when string) {
		t.Helper()
		if n := sweep(t, db, pool); n != left {
			t.Errorf("%d events are left %s, want %d", n, when, left)
		}
	}
	want(30, "without leases")
	lease(t, db, "a", lower, 0, `"unread":"true"`)
	want(30, "with an unread range")
	for why, properties := range map[string]string{"another server": `"term":"8:00000001"`, "a lost history": `"lost":"5"`} {
		lease(t, db, "a", lower, other, properties)
		lease(t, db, "a", upper, other, properties)
		want(30, "while the checkpoints are of "+why)
	}
	lease(t, db, "a", lower, other, "")
	lease(t, db, "a", upper, second, "")
	lease(t, db, "b", changefeed.FullRange(), first-1, "")
	want(30, "while another processor has handled none")
	lease(t, db, "b", changefeed.FullRange(), first, "")
	want(20, "after both processors have handled the first transaction")
	lease(t, db, "b", changefeed.FullRange(), fmt.Sprintf("%d.%d", second, 105), "")
	want(20, "while a checkpoint is within the second transaction")
	lease(t, db, "b", changefeed.FullRange(), other, `"state":"split"`)
	want(10, "while a range of one processor is slower, and the other processor splits its lease")
	lease(t, db, "b", changefeed.FullRange(), first, `"state":"done"`)
	lease(t, db, "a", upper, other, "")
	want(0, "after all ranges have passed them, beside a lease that was replaced")
	storeExpiring(t, pool, 0, 1, expired)
	if _, err := (postgres.Leases{DB: db}).Create(t.Context(), changefeed.Record{ID: "c..-FF", Body: []byte(`{"version":9,"FeedRange":{"Range":{}}}`)}); err != nil {
		t.Fatal(err)
	}
	if err := (postgres.Upkeep{DB: db}).Sweep(t.Context()); err == nil {
		t.Error("a lease that cannot be read holds nothing back")
	}
}

// The leases and heartbeats of a processor are those that a sweep understands.
func TestSweepDeletesAllThatARunningProcessorHasHandled(t *testing.T) {
	db, pool := openAt(t, database(t))
	feed, err := postgres.NewFeed(db, nil)
	must(t, err)
	storeExpiring(t, pool, 0, 1, expired)
	storeExpiring(t, pool, 1<<29, 1, expired)
	gate := make(chan struct{})
	handler := changefeed.Each(func(ctx context.Context, _ changefeed.Item) error {
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return ctx.Err()
	})
	p, err := changefeed.New(feed, postgres.Leases{DB: db}, handler, &changefeed.Options{Processor: "mailer", Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	defer func() { stop(); must(t, <-ended) }()
	within(t, "the leases are owned", func() bool {
		records, err := postgres.Leases{DB: db}.List(t.Context(), "mailer")
		must(t, err)
		return len(records) >= 5
	})
	if n := sweep(t, db, pool); n != 2 {
		t.Errorf("%d events are left before they are handled, want 2", n)
	}
	close(gate)
	within(t, "handled events are swept", func() bool { return sweep(t, db, pool) == 0 })
}

// Leases of a processor that is not used any more would keep all events for ever.
func TestDoctorNamesUnusedLeasesAndTheirRemedy(t *testing.T) {
	db, pool := openAt(t, database(t))
	whole := changefeed.FeedRange{Max: "FF"}
	at := storeExpiring(t, pool, 0, 3, expired)
	written := func(ago time.Duration) string {
		return `},"timestamp":"` + time.Now().Add(-ago).UTC().Format(time.RFC3339Nano) + `","more":{`
	}
	lease(t, db, "mailer", whole, at, written(time.Minute))
	examine := func() (found []operator.Finding) {
		doctor.Doctor{DB: db}.Examine(operator.ProcessRelay, func(e operator.Examination) bool {
			found = append(found, e(t.Context())...)
			return true
		})
		return slices.DeleteFunc(found, func(f operator.Finding) bool { return f.Check != "leases of all processors" })
	}
	if f := examine(); len(f) != 1 || f[0].Status != operator.FindingOK {
		t.Errorf("one processor, which runs: %+v", f)
	}
	lease(t, db, "mailer", changefeed.FeedRange{Max: "20000000"}, at, written(30*24*time.Hour)) // left of a split
	lease(t, db, "o'ld", whole, 0, written(30*24*time.Hour))
	lease(t, db, "older", whole, 0, "")
	found := examine()
	if len(found) != 2 || !strings.Contains(found[0].Detail, "processor o'ldpostgres_db_feedbox has 1, last written 20") || !strings.Contains(found[1].Detail, "older") ||
		!strings.Contains(found[1].Detail, "at an unknown time; 3 expired events") {
		t.Fatalf("%+v", found)
	}
	if n := sweep(t, db, pool); n != 3 {
		t.Errorf("%d events are left with the leases, want 3", n)
	}
	for _, f := range found {
		_, remedy, _ := strings.Cut(f.Next, "is ever deleted: ")
		_, err := pool.Exec(t.Context(), remedy)
		must(t, err)
	}
	if f := examine(); len(f) != 1 || f[0].Status != operator.FindingOK {
		t.Errorf("after the remedy: %+v", f)
	}
	if n := sweep(t, db, pool); n != 0 {
		t.Errorf("%d events are left after the remedy, want none", n)
	}
}

// The name of the schema ends the names of the processors, and must stay as it is there.
func TestRemedyForUnusedLeasesOfASchemaDeletesThem(t *testing.T) {
	url := database(t)
	db, err := postgres.Open(url, &postgres.DBOptions{Schema: "my_feedbox"})
	must(t, err)
	defer db.Close()
	must(t, db.Migrate(t.Context()))
	feed, err := postgres.NewFeed(db, nil)
	must(t, err)
	source, err := feed.Source(t.Context())
	must(t, err)
	id := "old" + source.Host + "_" + source.Database + "_" + source.Container + "..-FF"
	_, err = postgres.Leases{DB: db}.Create(t.Context(), changefeed.Record{ID: id, Body: fmt.Appendf(nil, `{"id":%q,"version":1,"FeedRange":{"Range":{"min":"","max":"FF"}},"Owner":null,"ContinuationToken":"\"0\"","properties":{}}`, id)})
	must(t, err)
	unused, _, err := db.UnusedLeases(t.Context())
	must(t, err)
	if len(unused) != 1 {
		t.Fatalf("unused: %+v", unused)
	}
	pool, err := pgxpool.New(t.Context(), url)
	must(t, err)
	defer pool.Close()
	if done, err := pool.Exec(t.Context(), unused[0].Delete); err != nil || done.RowsAffected() != 1 {
		t.Errorf("%s: %d leases are deleted, %v", unused[0].Delete, done.RowsAffected(), err)
	}
}

// A sweep deletes expired events and keeps the others. Only one relay sweeps at a time.
func TestSweep(t *testing.T) {
	t.Parallel()
	db, pool := openAt(t, database(t))
	storeExpiring(t, pool, 0, 12000, expired)
	lease(t, db, "a", changefeed.FullRange(), storeExpiring(t, pool, 12000, 10, `now() + interval '1 h'`), "")
	other, err := pool.Begin(t.Context())
	must(t, err)
	_, err = other.Exec(t.Context(), `SELECT pg_advisory_xact_lock(hashtextextended('feedbox sweep feedbox', 0))`)
	must(t, err)
	if n := sweep(t, db, pool); n != 12010 {
		t.Errorf("%d events are left while another relay sweeps, want all", n)
	}
	must(t, other.Rollback(t.Context()))
	if n := sweep(t, db, pool); n != 10 {
		t.Errorf("%d events are left, want 10", n)
	}
}

// Whatever the last batch of a sweep has deleted, the log names the lease that keeps events.
func TestSweepReportsKeptEventsOfEachBatch(t *testing.T) {
	t.Parallel()
	db, pool := openAt(t, database(t))
	kept := storeExpiring(t, pool, 1<<29, 10, `now() - interval '1 h'`)
	end := storeExpiring(t, pool, 0, 6000, expired) // two batches, with the others
	slow := changefeed.FeedRange{Min: "20000000", Max: "30000000"}
	lease(t, db, "a", slow, kept-1, "")
	lease(t, db, "a", changefeed.FeedRange{Max: "20000000"}, end, "")
	lease(t, db, "a", changefeed.FeedRange{Min: "30000000", Max: "FF"}, end, "")
	var log strings.Builder
	must(t, postgres.Upkeep{DB: db, Log: slog.New(slog.NewTextHandler(&log, nil))}.Sweep(t.Context()))
	var left int
	must(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM events`).Scan(&left))
	if left != 10 || !strings.Contains(log.String(), "expired events kept") || !strings.Contains(log.String(), "slowest=\"apostgres_db_feedbox.."+slow.String()) && !strings.Contains(log.String(), "slowest=apostgres_db_feedbox.."+slow.String()) {
		t.Errorf("%d events are left, log %q; want 10 that the lease of %s keeps", left, log.String(), slow)
	}
}

// Events that live longer, or for ever, hide no expired ones. Neither do events that expired at one
// time and are not handled yet.
func TestSweepPassesEventsThatAreKept(t *testing.T) {
	t.Parallel()
	const many = 11_000 // more than two batches
	for what, expires := range map[string]string{"live longer": `now() + interval '1 h'`, "live for ever": `NULL`, "are not handled": `now() - interval '1 h'`} {
		t.Run(what, func(t *testing.T) {
			db, pool := openAt(t, database(t))
			kept := storeExpiring(t, pool, 1<<29, many, expires)
			end := storeExpiring(t, pool, 0, many, expired)
			lease(t, db, "a", changefeed.FeedRange{Max: "20000000"}, end, "")
			lease(t, db, "a", changefeed.FeedRange{Min: "20000000", Max: "FF"}, kept-1, "")
			if n := sweep(t, db, pool); n != many {
				t.Errorf("%d events are left, want the %d that %s", n, many, what)
			}
		})
	}
}
