package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"feedbox/changefeed"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/recordstore"
	"feedbox/infrastructure/store/recordstore/parked"
	"feedbox/infrastructure/store/unitofwork"
)

// silentServer accepts logins, unless it is mute, and answers only the
// question whether it is a pooler.
type silentServer struct {
	mute  bool
	tasks sync.WaitGroup
}

func (s *silentServer) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	s.tasks.Go(func() {
		defer func() { _ = far.Close() }()
		b := pgproto3.NewBackend(far, far)
		if s.mute {
			_, _ = far.Read(make([]byte, 1)) // then nothing, until the client closes
			_, _ = far.Read(make([]byte, 1<<20))
			for {
				if _, err := far.Read(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}
		if _, err := b.ReceiveStartupMessage(); err != nil {
			return
		}
		b.Send(&pgproto3.AuthenticationOk{})
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		if b.Flush() != nil {
			return
		}
		for {
			message, err := b.Receive()
			if err != nil {
				return
			}
			if q, simple := message.(*pgproto3.Query); simple && strings.Contains(q.String, "pg_backend_pid") {
				b.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("same")}}})
				b.Send(&pgproto3.DataRow{Values: [][]byte{[]byte("1")}})
				b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
				b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
				_ = b.Flush() // the next message fails
			}
		}
	})
	return near, nil
}

// A process without ranges reads nothing. What its last read saw says nothing about the feed any more.
func TestFeedThatIsNotReadIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Feed{}
		for range 100 {
			f.watch(5, 9)
			time.Sleep(time.Second)
		}
		if held := f.Held(); held != 100*time.Second {
			t.Errorf("held for %v by reads of 100 s", held)
		}
		time.Sleep(10 * time.Minute)
		if held := f.Held(); held != 0 {
			t.Errorf("held for %v, but not read for 10 minutes", held)
		}
		f.watch(5, 9)
		if held := f.Held(); held > time.Second {
			t.Errorf("held for %v by the first read after a pause", held)
		}
	})
}

// On a busy server there is always an open transaction, but another one each time.
func TestFeedThatMovesIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Feed{}
		for horizon := range uint64(100) {
			f.watch(horizon, horizon+3)
			time.Sleep(time.Second)
			if held := f.Held(); held != time.Second {
				t.Errorf("held for %v by transactions of a second", held)
			}
		}
	})
}

// deadlines is a connection that counts the changes of its deadline.
type deadlines struct {
	net.Conn
	set int
}

func (d *deadlines) SetDeadline(time.Time) error {
	d.set++
	return nil
}

// The end of a statement does not remove the deadline of a close that has begun meanwhile.
func TestCloseKeepsItsDeadline(t *testing.T) {
	t.Parallel()
	conn := &deadlines{}
	closed := &pgconn.PgConn{}
	if !closed.IsClosed() {
		t.Fatal("the connection is open")
	}
	watcher{&pgconn.DeadlineContextWatcherHandler{Conn: conn}, closed}.HandleUnwatchAfterCancel()
	if conn.set != 0 {
		t.Errorf("the deadline was changed %d times", conn.set)
	}
}

// A timer that outlasts its statement costs memory until its limit, which a migration raises to many minutes.
func TestLimitEndsWithItsStatement(t *testing.T) {
	t.Parallel()
	l := limiter{statement: time.Hour}
	for name, do := range map[string]func(ctx context.Context) context.Context{
		"query": func(ctx context.Context) context.Context {
			ctx = l.TraceQueryStart(ctx, nil, pgx.TraceQueryStartData{})
			l.TraceQueryEnd(ctx, nil, pgx.TraceQueryEndData{})
			return ctx
		},
		"batch": func(ctx context.Context) context.Context {
			ctx = l.TraceBatchStart(ctx, nil, pgx.TraceBatchStartData{})
			l.TraceBatchEnd(ctx, nil, pgx.TraceBatchEndData{})
			return ctx
		},
		"connection of the pool": func(ctx context.Context) context.Context {
			ctx = l.TraceAcquireStart(ctx, nil, pgxpool.TraceAcquireStartData{})
			l.TraceAcquireEnd(ctx, nil, pgxpool.TraceAcquireEndData{})
			return ctx
		},
	} {
		if ctx := do(t.Context()); !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("%s: the context of a statement that has ended is still limited: %v", name, ctx.Err())
		}
	}
}

// A source of passwords that does not answer ends with the attempt to connect.
func TestPasswordHasALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &silentServer{}
		var took []time.Duration
		db, err := Open("postgres://user@127.0.0.1/app?sslmode=disable", &DBOptions{Dial: server.dial, Password: func(ctx context.Context, _ *pgx.ConnConfig) (string, error) {
			began := time.Now()
			<-ctx.Done()
			took = append(took, time.Since(began))
			return "", ctx.Err()
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Clock(t.Context()); err == nil {
			t.Error("no error without a password")
		}
		db.Close()
		server.tasks.Wait()
		if len(took) == 0 || slices.Max(took) > connectTimeout {
			t.Errorf("passwords were waited for for %v, want at most %v", took, connectTimeout)
		}
	})
}

// Each operation on a silent server ends within its limit, with a fault that says that the store
// does not answer.
func TestOperationsEndIfTheServerIsSilent(t *testing.T) {
	id := uuid.New()
	all := changefeed.ReadRequest{Range: changefeed.FeedRange{Min: "", Max: "FF"}, MaxItems: 10}
	feed := func(db *DB) *Feed {
		f, err := NewFeed(db, &FeedOptions{Ranges: 1, Hold: 250 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	operations := map[string]func(ctx context.Context, db *DB) error{
		"verify":  func(ctx context.Context, db *DB) error { return db.Verify(ctx) },
		"migrate": func(ctx context.Context, db *DB) error { return db.Migrate(ctx) },
		"clock":   func(ctx context.Context, db *DB) error { _, err := db.Clock(ctx); return err },
		"oldest":  func(ctx context.Context, db *DB) error { _, err := db.OldestTransaction(ctx); return err },
		"size":    func(ctx context.Context, db *DB) error { _, err := db.Size(ctx); return err },
		"sweep":   func(ctx context.Context, db *DB) error { return Upkeep{DB: db, Log: slog.Default()}.Sweep(ctx) },
		"source":  func(ctx context.Context, db *DB) error { _, err := feed(db).Source(ctx); return err },
		"now":     func(ctx context.Context, db *DB) error { _, err := feed(db).Now(ctx, all.Range); return err },
		"read":    func(ctx context.Context, db *DB) error { _, err := feed(db).Read(ctx, all); return err },
		"leases":  func(ctx context.Context, db *DB) error { _, err := Leases{db}.List(ctx, "x"); return err },
		"lease":   func(ctx context.Context, db *DB) error { _, err := Leases{db}.Read(ctx, "x"); return err },
		"create": func(ctx context.Context, db *DB) error {
			_, err := Leases{db}.Create(ctx, changefeed.Record{ID: "x"})
			return err
		},
		"replace": func(ctx context.Context, db *DB) error {
			_, err := Leases{db}.Replace(ctx, changefeed.Record{ID: "x"})
			return err
		},
		"delete": func(ctx context.Context, db *DB) error { return Leases{db}.Delete(ctx, "x", "1") },
		"gate":   func(ctx context.Context, db *DB) error { _, _, err := Parked{DB: db}.Find(ctx, "k", nil); return err },
		"gates":  func(ctx context.Context, db *DB) error { _, err := Parked{DB: db}.Gates(ctx, true); return err },
		"first": func(ctx context.Context, db *DB) error {
			_, err := Parked{DB: db}.First(ctx, "k", 1, 1<<20)
			return err
		},
		"skipped": func(ctx context.Context, db *DB) error { _, err := Parked{DB: db}.Skipped(ctx, "k"); return err },
		"change gate": func(ctx context.Context, db *DB) error {
			_, err := Parked{DB: db}.Commit(ctx, &parked.Change{})
			return err
		},
		"event":  func(ctx context.Context, db *DB) error { _, err := Records{db}.Event(ctx, "k", "e"); return err },
		"events": func(ctx context.Context, db *DB) error { _, err := Records{db}.Events(ctx, "k"); return err },
		"replace event": func(ctx context.Context, db *DB) error {
			_, err := Records{db}.ReplaceEvent(ctx, "k", "e", recordstore.StoredEvent{}, nil)
			return err
		},
		"save": func(ctx context.Context, db *DB) error {
			return Records{db}.Save(ctx, &recordstore.Change{Change: &unitofwork.Change{ID: id}})
		},
		"saved": func(ctx context.Context, db *DB) error {
			_, _, err := Records{db}.Saved(ctx, &recordstore.Change{Change: &unitofwork.Change{ID: id}})
			return err
		},
		"aggregate":  func(ctx context.Context, db *DB) error { _, err := Records{db}.Aggregate(ctx, "x", id); return err },
		"aggregates": func(ctx context.Context, db *DB) error { _, err := Records{db}.Aggregates(ctx, "x", id, 1); return err },
		"tombstone":  func(ctx context.Context, db *DB) error { _, err := Records{db}.Earlier(ctx, id); return err },
		"request":    func(ctx context.Context, db *DB) error { _, err := Records{db}.Request(ctx, id, "r"); return err },
		"audit":      func(ctx context.Context, db *DB) error { _, err := Records{db}.Audits(ctx, id, 0, 1); return err },
	}
	limits := map[string]time.Duration{"migrate": migrateTimeout, "sweep": upkeepTimeout}
	for name, do := range operations {
		for _, mute := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s mute=%t", name, mute), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := &silentServer{mute: mute}
					db, err := Open("postgres://user@127.0.0.1/app?sslmode=disable", &DBOptions{Dial: server.dial})
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
					defer cancel()
					limit := acquireTimeout + max(limits[name], defaultTimeout)
					began := time.Now()
					err = do(ctx, db)
					if took := time.Since(began); took > limit {
						t.Errorf("took %v, want %v at most", took, limit)
					}
					if fault.KindOf(err) != fault.Unavailable {
						t.Errorf("error %v, want that the store does not answer", err)
					}
					began = time.Now()
					db.Close()
					if took := time.Since(began); took > 20*time.Second {
						t.Errorf("the database closed after %v", took)
					}
					server.tasks.Wait()
				})
			})
		}
	}
}

// A read of the feed ends within the 30 s that a processor waits for it, also while another read
// of the feed polls.
func TestConcurrentReadsEndIfTheServerIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &silentServer{}
		db, err := Open("postgres://user@127.0.0.1/app?sslmode=disable&pool_max_conns=2", &DBOptions{Dial: server.dial})
		if err != nil {
			t.Fatal(err)
		}
		feed, err := NewFeed(db, &FeedOptions{Ranges: 1, Hold: 250 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		var reads sync.WaitGroup
		for range 8 {
			reads.Go(func() {
				began := time.Now()
				_, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FeedRange{Min: "", Max: "FF"}, MaxItems: 10})
				if took := time.Since(began); err == nil || took > 30*time.Second {
					t.Errorf("error %v after %v", err, took)
				}
			})
		}
		reads.Wait()
		db.Close()
		server.tasks.Wait()
	})
}

// The server ends a connection whose transaction exceeds a limit of the role. Nothing of it is stored, and another
// attempt may succeed.
func TestLimitOfATransactionOnlyDelaysIt(t *testing.T) {
	t.Parallel()
	for _, condition := range []string{"25P03", "25P04"} { // the second is of PostgreSQL 17
		err := &pgconn.PgError{Severity: "FATAL", Code: condition}
		if !fault.Is(asFault("save", err), fault.Unavailable) || (Records{}).Ambiguous(err) {
			t.Errorf("%s: %v, ambiguous %v; want unavailable, and nothing stored", condition, asFault("save", err), (Records{}).Ambiguous(err))
		}
	}
}

// A commit that gets no connection is certainly not stored.
func TestCommitWithoutAConnectionIsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &silentServer{}
		db, err := Open("postgres://user@127.0.0.1/app?sslmode=disable&pool_max_conns=1", &DBOptions{Dial: server.dial})
		if err != nil {
			t.Fatal(err)
		}
		busy, err := db.pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = Records{db}.Save(t.Context(), &recordstore.Change{Change: &unitofwork.Change{ID: uuid.New()}})
		if !fault.Is(err, fault.Unavailable) || (Records{}).Ambiguous(err) {
			t.Errorf("%v, ambiguous %t; want unavailable, and nothing stored", err, (Records{}).Ambiguous(err))
		}
		busy.Release()
		db.Close()
		server.tasks.Wait()
	})
}

// A server that crashes because it cannot write its log may have written the commit.
func TestCommitOfAServerThatCrashesMayBeStored(t *testing.T) {
	t.Parallel()
	for _, err := range []*pgconn.PgError{{Code: "40003"}, {SeverityUnlocalized: "PANIC", Code: "53100"}, {SeverityUnlocalized: "PANIC", Code: "58030"}, {SeverityUnlocalized: "PANIC", Code: "XX000"}} {
		if !fault.Is(asFault("save", err), fault.Unavailable) || !(Records{}).Ambiguous(err) || err.SeverityUnlocalized != "" && answered(err) {
			t.Errorf("%s: %v, ambiguous %v, answered %v; want unavailable, and an unknown outcome", err, asFault("save", err), (Records{}).Ambiguous(err), answered(err))
		}
	}
	for _, condition := range []string{"53100", "58030", "XX000"} {
		if err := (&pgconn.PgError{SeverityUnlocalized: "ERROR", Code: condition}); (Records{}).Ambiguous(err) {
			t.Errorf("%s: ambiguous; want nothing stored", err)
		}
	}
}

func TestEveryTimeoutNamesTheOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &silentServer{}
		db, err := Open("postgres://user@127.0.0.1/app?sslmode=disable", &DBOptions{Dial: server.dial, Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = db.Clock(t.Context())
		if took := time.Since(began); took != time.Second || !strings.Contains(err.Error(), "read the server's clock") {
			t.Errorf("error %v after %v", err, took)
		}
		db.Close()
		server.tasks.Wait()
	})
}

// A continuation is read as it was written, or refused.
func FuzzContinuation(f *testing.F) {
	for _, seed := range []string{``, `"7"`, `"7.3"`, `"7.1073741824"`, `"7.-1"`, `"7.3`, `7.3"`, `"7.3""`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePosition(keySpace{changefeed.FullRange()}, changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: text})
		if err != nil {
			if !errors.Is(err, changefeed.ErrPermanent) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		again := recordstore.Token(p.Position)
		if p.hash != wholeTransaction {
			again = tokenWithin(p.Position, p.hash)
		}
		q, err := parsePosition(keySpace{changefeed.FullRange()}, changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: again})
		if err != nil || q.Position != p.Position || q.hash != p.hash || p.hash < 0 || p.hash != wholeTransaction && p.hash >= 1<<recordstore.HashBits {
			t.Errorf("%q is read as %+v, and %q as %+v, %v", text, p, again, q, err)
		}
	})
}
