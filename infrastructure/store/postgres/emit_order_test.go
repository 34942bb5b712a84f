package postgres_test

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx" of database/sql

	"feedbox/changefeed"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/postgres"
)

// inbox receives the events of a feed as a relay sends them, those of one position by sequence.
type inbox struct {
	feed *postgres.Feed
	at   map[changefeed.FeedRange]string
	last map[string]int64
}

func newInbox(t testing.TB, db *postgres.DB, ranges int) *inbox {
	t.Helper()
	feed, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: ranges})
	must(t, err)
	return &inbox{feed, map[changefeed.FeedRange]string{}, map[string]int64{}}
}

// read reads pages of most events until it has reached the end of all ranges. Each event must have
// the sequence that follows the last one of its key.
func (in *inbox) read(t testing.TB, most int) (bodies []string) {
	t.Helper()
	ranges, err := in.feed.Ranges(t.Context())
	must(t, err)
	for _, r := range ranges {
		for caughtUp := false; !caughtUp; {
			page, err := in.feed.Read(t.Context(), changefeed.ReadRequest{Range: r, Continuation: in.at[r], MaxItems: most})
			must(t, err)
			type sent struct {
				at       int64
				key      string
				sequence int64
				body     string
			}
			var events []sent
			for _, item := range page.Items {
				m, isEvent, err := document.EventDecoder{}.Decode(item.Raw)
				must(t, err)
				if !isEvent {
					t.Fatalf("%s is no event", item.Raw)
				}
				events = append(events, sent{item.LSN, m.Key, m.Sequence, string(m.Body)})
			}
			slices.SortStableFunc(events, func(a, b sent) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.sequence, b.sequence)) })
			for _, e := range events {
				if e.sequence != in.last[e.key]+1 {
					t.Fatalf("key %s: event %d at position %d follows event %d", e.key, e.sequence, e.at, in.last[e.key])
				}
				in.last[e.key] = e.sequence
				bodies = append(bodies, e.body)
			}
			in.at[r], caughtUp = page.Continuation, page.CaughtUp
		}
	}
	return bodies
}

// A transaction that has taken its id early emits after one that began later and has committed.
func TestEventsFollowEarlierOnesOfTransactionsWithHigherIDs(t *testing.T) {
	db, pool := openAt(t, database(t))
	ctx := t.Context()
	_, err := pool.Exec(ctx, `CREATE TABLE orders (id text)`)
	must(t, err)
	early, err := pool.Begin(ctx)
	must(t, err)
	_, err = early.Exec(ctx, `INSERT INTO orders VALUES ('k')`) // takes the id
	must(t, err)
	std, err := sql.Open("pgx", pool.Config().ConnString())
	must(t, err)
	defer func() { must(t, std.Close()) }()
	late, err := std.BeginTx(ctx, nil)
	must(t, err)
	must(t, postgres.EmitSQL(ctx, late, "k", postgres.Event{Action: "First", Data: map[string]int{"n": 1}}, postgres.Event{Action: "Second"}))
	must(t, late.Commit())
	must(t, postgres.Emit(ctx, early, "k", postgres.Event{Action: "Third"}, postgres.Event{Action: "Fourth", Data: json.RawMessage(`{"big": 12345678901234567890}`)}))
	must(t, early.Commit(ctx))
	must(t, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return postgres.Emit(ctx, tx, "k", postgres.Event{Action: "Fifth"}) }))
	in, all := newInbox(t, db, 1), []string(nil)
	within(t, "five events are read", func() bool { all = append(all, in.read(t, 1)...); return len(all) >= 5 })
	for i, want := range []string{`"First"`, `"Second"`, `"Third"`, `"Fourth"`, `"Fifth"`} {
		if !strings.Contains(all[i], want) || strings.Contains(all[i], "big") != (i == 3) || i == 3 && !strings.Contains(all[i], "12345678901234567890") {
			t.Errorf("event %d is %s", i+1, all[i])
		}
	}
}

// client is a transaction of adopters.
type client struct {
	tx      pgx.Tx
	emitted []string // its keys, with repeats
	saved   int      // length of emitted at the savepoint; -1 without one
	waits   string
	done    chan error // of the call that waits
}

// Transactions of all isolation levels take ids, emit, wait for keys, roll back to savepoints, commit
// and abort in random order while the feed is read: each key's events arrive in order, and all that
// were committed.
func TestRandomInterleavingsKeepTheOrderOfKeys(t *testing.T) {
	db, pool := openAt(t, database(t))
	_, err := pool.Exec(t.Context(), `CREATE TABLE orders (id text)`)
	must(t, err)
	first := seedOf(t)
	in, committed := newInbox(t, db, 4), map[string]int64{}
	for seed := first; seed < first+40; seed++ {
		interleave(t, rand.New(rand.NewPCG(seed, 0)), pool, in, committed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	within(t, "all committed events are read", func() bool { in.read(t, 3); return maps.Equal(in.last, committed) })
	t.Log(committed)
}

func unserializable(err error) bool {
	reply, ok := errors.AsType[*pgconn.PgError](err)
	return ok && reply.Code == "40001"
}

func interleave(t *testing.T, random *rand.Rand, pool *pgxpool.Pool, in *inbox, committed map[string]int64) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var open []*client
	holds, queued := map[string]*client{}, map[string]*client{}
	var emitted func(c *client, key string, err error)
	release := func(c *client, keys []string) {
		for _, key := range keys {
			if holds[key] != c {
				continue
			}
			delete(holds, key)
			if w := queued[key]; w != nil {
				w.waits = ""
				delete(queued, key)
				emitted(w, key, <-w.done)
			}
		}
	}
	var end func(c *client, commit bool)
	// emitted processes the result of a call. A transaction with an older snapshot than the key's last
	// commit is refused, and rolled back.
	emitted = func(c *client, key string, err error) {
		if unserializable(err) {
			end(c, false)
			return
		}
		must(t, err)
		holds[key], c.emitted = c, append(c.emitted, key)
	}
	end = func(c *client, commit bool) {
		open = slices.DeleteFunc(open, func(other *client) bool { return other == c })
		if !commit {
			must(t, c.tx.Rollback(ctx))
		} else if err := c.tx.Commit(ctx); err == nil {
			for _, key := range c.emitted {
				committed[key]++
			}
		} else if !unserializable(err) {
			t.Fatal(err)
		}
		release(c, c.emitted)
	}
	run := func(c *client, sql string) (done bool) {
		_, err := c.tx.Exec(ctx, sql)
		if unserializable(err) {
			end(c, false)
			return false
		}
		must(t, err)
		return true
	}
	for range 60 {
		if len(open) < 4 && random.IntN(3) == 0 {
			level := []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable}[random.IntN(4)]
			tx, err := pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: level})
			must(t, err)
			open = append(open, &client{tx: tx, saved: -1, done: make(chan error, 1)})
		}
		if random.IntN(4) == 0 {
			in.read(t, 1+random.IntN(3))
		}
		if len(open) == 0 {
			continue
		}
		c := open[random.IntN(len(open))]
		if c.waits != "" {
			continue
		}
		switch n := random.IntN(10); {
		case n < 2:
			run(c, `INSERT INTO orders VALUES ('x')`)
		case n == 2:
			if run(c, `SAVEPOINT s`) {
				c.saved = len(c.emitted)
			}
		case n == 3 && c.saved >= 0 && run(c, `ROLLBACK TO s`):
			undone := slices.DeleteFunc(slices.Clone(c.emitted[c.saved:]), func(key string) bool { return slices.Contains(c.emitted[:c.saved], key) })
			c.emitted = c.emitted[:c.saved]
			release(c, undone)
		case n < 8:
			key := fmt.Sprint("key ", random.IntN(3))
			emit := func() error { return postgres.Emit(ctx, c.tx, key, postgres.Event{Action: "A"}) }
			switch holder := holds[key]; {
			case holder == nil || holder == c:
				emitted(c, key, emit())
			case holder.waits == "" && queued[key] == nil && !slices.ContainsFunc(c.emitted, func(key string) bool { return queued[key] != nil }): // no deadlock
				c.waits, queued[key] = key, c
				go func() { c.done <- emit() }()
			}
		default:
			end(c, n == 8 || random.IntN(2) == 0)
		}
	}
	for len(open) > 0 { // one of them waits for none
		i := slices.IndexFunc(open, func(c *client) bool { return c.waits == "" })
		end(open[i], true)
	}
}
