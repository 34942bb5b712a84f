package postgresinbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/postgresinbox"
	"feedbox/tests/servers"
	"feedbox/tests/testkit"
)

// billing is a consumer that adds up the sequences of a key's events.
type billing struct {
	*postgresinbox.Inbox
	pool *pgxpool.Pool
}

func newBilling(t *testing.T, server *servers.Postgres) *billing {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), server.Database(t))
	must(t, err)
	t.Cleanup(pool.Close)
	b := &billing{pool: pool}
	b.Inbox, err = postgresinbox.New(pool, "billing", nil)
	must(t, err)
	var processes sync.WaitGroup
	for range 8 { // all at once
		processes.Go(func() {
			if err := b.Create(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	processes.Wait()
	_, err = pool.Exec(t.Context(), `CREATE TABLE totals (key text PRIMARY KEY, total bigint NOT NULL)`)
	must(t, err)
	return b
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func event(sequence int64) *consumer.Event {
	return &consumer.Event{ID: "e" + string(rune('0'+sequence)), Key: "k", Sequence: sequence, AggregateVersion: sequence}
}

func (b *billing) add(e *consumer.Event) func(ctx context.Context, tx pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO totals AS t VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET total = t.total + EXCLUDED.total`, e.Key, e.Sequence)
		return err
	}
}

func (b *billing) want(t *testing.T, total int64, last *consumer.Event) {
	t.Helper()
	var got int64
	must(t, b.pool.QueryRow(t.Context(), `SELECT coalesce(sum(total), 0)::bigint FROM totals`).Scan(&got))
	mark, err := b.Last(t.Context(), "k")
	must(t, err)
	mark.Recent = ""
	want := consumer.Mark{}
	if last != nil {
		want = last.Mark()
	}
	if got != total || mark != want {
		t.Errorf("the total is %d, want %d; the mark %+v, want %+v", got, total, mark, want)
	}
}

// TestInbox runs all tests that need a server on one, because it takes seconds to start.
func TestInbox(t *testing.T) {
	server := servers.StartPostgres(t)
	t.Run("each event has one effect", func(t *testing.T) { testEffects(t, newBilling(t, server)) })
	t.Run("events without sequence are compared by version and id", func(t *testing.T) { testWithoutSequences(t, newBilling(t, server)) })
	t.Run("an id may have any characters", func(t *testing.T) { testIDs(t, newBilling(t, server)) })
	t.Run("a fork is handled once", func(t *testing.T) { testForks(t, newBilling(t, server)) })
	t.Run("an event that is being parked is not handled", func(t *testing.T) { testParking(t, newBilling(t, server)) })
}

// The mark of an event is that of the same event, also if its producer left the end of a line in the id.
func testIDs(t *testing.T, b *billing) {
	total := int64(0)
	for i, id := range []string{"a\n", "b\nc", `"d"`, `\n`, "e"} {
		e := event(int64(i + 1))
		e.ID = id
		total += e.Sequence
		for range 2 {
			must(t, b.Do(t.Context(), e, b.add(e)))
			b.want(t, total, e)
		}
		parking := e.Mark()
		parking.Parking = id + "\n"
		must(t, b.Record(t.Context(), "parked", e.Mark()))
		must(t, b.Record(t.Context(), "parked", parking))
		if got, err := b.Last(t.Context(), "parked"); err != nil || got != parking {
			t.Errorf("the mark of %q is %+v, want %+v, %v", id, got, parking, err)
		}
	}
}

func testParking(t *testing.T, b *billing) {
	ctx := t.Context()
	for _, sequence := range []int64{1, 2, 4} {
		before, err := b.Last(ctx, "k")
		must(t, err)
		announced := before
		announced.Parking = event(sequence).ID
		for range 2 { // the answer of the first may be lost
			must(t, b.Record(ctx, "k", announced))
		}
		if got, err := b.Last(ctx, "k"); err != nil || got != announced {
			t.Errorf("the mark is %+v, want %+v, %v", got, announced, err)
		}
		if err := b.Do(ctx, event(sequence), b.add(event(sequence))); !errors.Is(err, consumer.ErrParking) {
			t.Errorf("event %d: %v", sequence, err)
		}
		must(t, b.Record(ctx, "k", before.Next(event(sequence))))
		must(t, b.Record(ctx, "k", announced)) // too late
		next := event(sequence + 1)
		if sequence == 1 {
			continue // the next one is announced, too
		}
		must(t, b.Do(ctx, next, b.add(next)))
		must(t, b.Record(ctx, "k", announced))
	}
	b.want(t, 8, event(5))

	held, err := b.Last(ctx, "k")
	must(t, err)
	held = held.Next(event(6))
	former, open, next := held, held, held
	held.Parking, open.Parking, next.Parking = consumer.ParkedKey, consumer.OpenKey, event(7).ID
	for _, m := range []consumer.Mark{held, former} { // of the owner, and of a former one that was late
		must(t, b.Record(ctx, "k", m))
	}
	if err := b.Do(ctx, event(7), b.add(event(7))); !errors.Is(err, consumer.ErrParking) {
		t.Errorf("event 7 of a parked key: %v", err)
	}
	for _, m := range []consumer.Mark{open, next, open} {
		must(t, b.Record(ctx, "k", m))
	}
	if got, err := b.Last(ctx, "k"); err != nil || got != next {
		t.Errorf("the mark is %+v, want %+v, %v", got, next, err)
	}
	// Events without a sequence.
	for _, m := range []consumer.Mark{{EventID: "x"}, {EventID: "y", Parking: consumer.ParkedKey}, {EventID: "y"}} {
		must(t, b.Record(ctx, "k", m))
	}
	if got, err := b.Last(ctx, "k"); err != nil || got != (consumer.Mark{EventID: "y", Parking: consumer.ParkedKey}) {
		t.Errorf("the mark is %+v, %v", got, err)
	}
}

func testEffects(t *testing.T, b *billing) {
	ctx := t.Context()
	b.want(t, 0, nil)

	// The writes of a handler and the mark are stored together.
	wrong := errors.New("wrong")
	if err := b.Do(ctx, event(1), func(ctx context.Context, tx pgx.Tx) error {
		must(t, b.add(event(1))(ctx, tx))
		return wrong
	}); !errors.Is(err, wrong) {
		t.Errorf("a handler that fails: %v", err)
	}
	b.want(t, 0, nil)
	for _, n := range []int64{1, 2, 1, 2, 3} {
		must(t, b.Do(ctx, event(n), b.add(event(n))))
	}
	resubmitted := event(1) // dead-lettered before, so event 3 does not make it stale
	for _, id := range []string{"r1", "r1"} {
		resubmitted.Resubmission = id
		must(t, b.Do(ctx, resubmitted, b.add(resubmitted)))
	}
	b.want(t, 7, event(3))
	_, err := b.pool.Exec(ctx, `UPDATE totals SET total = total - 1`)
	must(t, err)
	_, err = b.pool.Exec(ctx, `DELETE FROM feedbox_inbox WHERE key = 'resubmission:r1'`)
	must(t, err)
	b.want(t, 6, event(3))

	// A process that has not noticed that it lost the key waits, and the event is handled once.
	other := make(chan error, 1)
	must(t, b.Do(ctx, event(4), func(ctx context.Context, tx pgx.Tx) error {
		go func() { other <- b.Do(t.Context(), event(4), b.add(event(4))) }()
		testkit.Eventually(t, time.Minute, "a transaction that waits for the row", func() (waits bool) {
			must(t, b.pool.QueryRow(ctx, `SELECT count(*) > 0 FROM pg_locks WHERE NOT granted`).Scan(&waits))
			return waits
		})
		return b.add(event(4))(ctx, tx)
	}))
	must(t, <-other)
	b.want(t, 10, event(4))

	// The Record call of the kit finds the mark and never moves it back.
	must(t, b.Record(ctx, "k", event(4).Mark()))
	must(t, b.Record(ctx, "k", event(2).Mark()))
	b.want(t, 10, event(4))
	must(t, b.Record(ctx, "k", event(5).Mark())) // as after a dead letter
	b.want(t, 10, event(5))

	// Consumers have separate marks.
	shipping, err := postgresinbox.New(b.pool, "shipping", &postgresinbox.Options{Table: "public.feedbox_inbox"})
	must(t, err)
	if mark, err := shipping.Last(ctx, "k"); err != nil || mark != (consumer.Mark{}) {
		t.Errorf("another consumer: %+v, %v", mark, err)
	}
	must(t, shipping.Do(ctx, event(1), b.add(event(1))))
	b.want(t, 11, event(5))

	// The age of a mark is that of the last event.
	for n, handle := range map[int64]func(e *consumer.Event) error{
		6: func(e *consumer.Event) error { return b.Do(ctx, e, func(context.Context, pgx.Tx) error { return nil }) },
		7: func(e *consumer.Event) error { return b.Record(ctx, "k", e.Mark()) },
	} {
		_, err = b.pool.Exec(ctx, `UPDATE feedbox_inbox SET handled_at = now() - interval '2 hours', sequence = $1 WHERE key = 'k'`, n-1)
		must(t, err)
		must(t, handle(event(n)))
		if n, err := b.Forget(ctx, time.Hour); n != 0 || err != nil {
			t.Errorf("forgotten: %d, %v", n, err)
		}
	}
	if n, err := b.Forget(ctx, -time.Hour); n != 1 || err != nil { // all marks, because the limit is one hour ahead
		t.Errorf("forgotten: %d, %v", n, err)
	}
	b.want(t, 11, nil)
}

func testWithoutSequences(t *testing.T, b *billing) {
	bare := func(id string, version int64) *consumer.Event {
		return &consumer.Event{ID: id, Key: "k", AggregateVersion: version}
	}
	calls := 0
	for _, e := range []*consumer.Event{bare("a", 1), bare("a", 1), bare("b", 2), bare("a", 1), bare("c", 0)} {
		must(t, b.Do(t.Context(), e, func(context.Context, pgx.Tx) error { calls++; return nil }))
	}
	if calls != 3 {
		t.Errorf("%d calls of the handler, want 3", calls)
	}
	must(t, b.Record(t.Context(), "k", bare("d", 3).Mark()))
	b.want(t, 0, bare("d", 3))

	// Events of other publishers may have no id.
	for _, n := range []int64{4, 5} {
		must(t, b.Record(t.Context(), "k", consumer.Mark{Sequence: n}))
	}
	b.want(t, 0, &consumer.Event{Key: "k", Sequence: 5})
}

func TestInvalidArguments(t *testing.T) {
	if _, err := postgresinbox.New(nil, "billing", nil); err == nil {
		t.Error("New accepts a nil pool")
	}
	b, err := postgresinbox.New(&pgxpool.Pool{}, "billing", nil)
	must(t, err)
	for _, e := range []*consumer.Event{nil, {Key: "k"}, {ID: "e"}} {
		if err := b.Do(t.Context(), e, nil); err == nil {
			t.Errorf("%+v: no error", e)
		}
	}
}

// The store has lost events 3 and 4, and gives their sequences to others.
func testForks(t *testing.T, b *billing) {
	t.Helper()
	inbox, err := postgresinbox.New(b.pool, "forks", &postgresinbox.Options{Table: "public.feedbox_inbox"})
	must(t, err)
	var handled []string
	do := func(e *consumer.Event) {
		t.Helper()
		must(t, inbox.Do(t.Context(), e, func(context.Context, pgx.Tx) error {
			handled = append(handled, fmt.Sprint(e.ID, " ", e.Replaced))
			return nil
		}))
	}
	last := func() consumer.Mark {
		t.Helper()
		m, err := inbox.Last(t.Context(), event(1).Key)
		must(t, err)
		return m
	}
	for n := range int64(4) {
		do(event(n + 1))
	}
	before, fork, dead := last(), event(3), event(2)
	fork.ID, dead.ID = "other", "dead"
	do(fork)
	do(fork)                                                        // redelivered
	must(t, inbox.Record(t.Context(), fork.Key, before.Next(fork))) // by the kit
	must(t, inbox.Record(t.Context(), fork.Key, before.Next(dead))) // by an owner that was replaced
	if want := []string{"e1 0", "e2 0", "e3 0", "e4 0", "other 2"}; !slices.Equal(handled, want) || last().EventID != "other" {
		t.Errorf("handled %q, want %q; the mark %+v", handled, want, last())
	}
	must(t, inbox.Record(t.Context(), dead.Key, last().Next(dead))) // a dead letter
	if m := last(); m.EventID != "dead" || m.Sequence != 2 {
		t.Errorf("after a dead letter that begins another history the mark is %+v", m)
	}
}

// silentPool answers nothing, or with begins set, everything except commits.
type silentPool struct{ begins bool }

func silent(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func (silentPool) Exec(ctx context.Context, _ string, _ ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, silent(ctx)
}

func (silentPool) QueryRow(ctx context.Context, _ string, _ ...any) pgx.Row {
	return silentRow(func() error { return silent(ctx) })
}

func (p silentPool) Begin(ctx context.Context) (pgx.Tx, error) {
	if p.begins {
		return silentTx{}, nil
	}
	return nil, silent(ctx)
}

type silentRow func() error

func (r silentRow) Scan(...any) error { return r() }

type silentTx struct{ pgx.Tx }

func (silentTx) Exec(context.Context, string, ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, nil
}
func (silentTx) QueryRow(context.Context, string, ...any) pgx.Row { return emptyRow{} }
func (silentTx) Commit(ctx context.Context) error                 { return silent(ctx) }
func (silentTx) Rollback(context.Context) error                   { return pgx.ErrTxClosed }

type emptyRow struct{}

func (emptyRow) Scan(...any) error { return nil }

// Each operation on a silent server ends within its limit. The time of a handler does not count.
func TestOperationsEndIfTheServerIsSilent(t *testing.T) {
	handle := func(ctx context.Context, _ pgx.Tx) error { time.Sleep(time.Hour); return ctx.Err() }
	for name, c := range map[string]struct {
		pool  silentPool
		do    func(ctx context.Context, b *postgresinbox.Inbox) error
		limit time.Duration
	}{
		"create": {silentPool{}, func(ctx context.Context, b *postgresinbox.Inbox) error { return b.Create(ctx) }, 3 * time.Second},
		"last":   {silentPool{}, func(ctx context.Context, b *postgresinbox.Inbox) error { _, err := b.Last(ctx, "k"); return err }, 3 * time.Second},
		"record": {silentPool{}, func(ctx context.Context, b *postgresinbox.Inbox) error { return b.Record(ctx, "k", consumer.Mark{}) }, 3 * time.Second},
		"forget": {silentPool{}, func(ctx context.Context, b *postgresinbox.Inbox) error {
			_, err := b.Forget(ctx, time.Hour)
			return err
		}, 2 * time.Minute},
		"begin":  {silentPool{}, func(ctx context.Context, b *postgresinbox.Inbox) error { return b.Do(ctx, event(1), handle) }, 3 * time.Second},
		"commit": {silentPool{begins: true}, func(ctx context.Context, b *postgresinbox.Inbox) error { return b.Do(ctx, event(1), handle) }, time.Hour + 3*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, err := postgresinbox.New(c.pool, "billing", &postgresinbox.Options{Timeout: 3 * time.Second})
				must(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				began := time.Now()
				err = c.do(ctx, b)
				if took := time.Since(began); err == nil || errors.Is(err, context.Canceled) || took != c.limit {
					t.Errorf("error %v after %v, want one after %v", err, took, c.limit)
				}
			})
		})
	}
}
