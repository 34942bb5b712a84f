package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/changefeed/leasetest"
	"feedbox/infrastructure/store/postgres"
	"feedbox/infrastructure/store/recordstore"
	"feedbox/infrastructure/store/recordstore/parked"
	"feedbox/infrastructure/store/recordstore/recordstoretest"
	"feedbox/tests/servers"
	"feedbox/tests/testenv"
)

// An asynchronous standby that is promoted repeats the transaction ids of commits that it has lost.
// Every event that it has is delivered, also under a repeated id, and those of a key in order.
func TestAsynchronousFailoverDeliversAllThatTheNewPrimaryHas(t *testing.T) {
	t.Parallel()
	c := newCluster(t, false)
	ghosts := 0
	for cycle := range testenv.Count(t, "FAILOVER_CYCLES", 2) {
		gone, lost := c.failOver(t)
		ghosts += gone
		t.Logf("cycle %d: %d acknowledged events are lost, %d delivered ones", cycle, lost, gone)
	}
	if ghosts == 0 {
		t.Error("no delivered event was lost: the standby never lagged, so the test has shown nothing")
	}
}

// With a synchronous standby nothing is lost, and nothing is delivered that is not stored.
func TestSynchronousFailoverLosesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, true)
	for cycle := range testenv.Count(t, "FAILOVER_CYCLES", testenv.Sample(t, 1, 2)) {
		if gone, lost := c.failOver(t); gone+lost != 0 {
			t.Errorf("cycle %d: %d acknowledged events are lost, %d delivered ones", cycle, lost, gone)
		}
	}
}

// The promoted standby repeats ids: positions, ranges known to be empty and leases of before are not
// those of the new primary.
func TestNothingFromBeforeAFailoverIsUsedAfterIt(t *testing.T) {
	t.Parallel()
	primary := servers.StartPostgres(t)
	openAt(t, primary.Database(t))
	standby := primary.Standby(t)
	db, pool := openAt(t, primary.URLWith(standby, 1))
	store := func(id string) (xid uint64) {
		t.Helper()
		must(t, pool.QueryRow(t.Context(), insertEvent+` RETURNING xid`, 1, "k", id, `{}`).Scan(&xid))
		return xid
	}
	var feeds [2]*postgres.Feed
	for i := range feeds {
		var err error
		feeds[i], err = postgres.NewFeed(db, &postgres.FeedOptions{Ranges: 2})
		must(t, err)
	}
	ranges, err := feeds[0].Ranges(t.Context())
	must(t, err)
	read := func(feed int, position string) (*changefeed.Page, error) {
		return feeds[feed].Read(t.Context(), changefeed.ReadRequest{Range: ranges[0], Continuation: position})
	}
	store("before")
	before, err := read(0, "")
	must(t, err)
	_, err = postgres.Leases{DB: db}.Create(t.Context(), changefeed.Record{ID: "l", Body: []byte(`{"id":"l"}`)})
	must(t, err)
	lease, err := postgres.Leases{DB: db}.Read(t.Context(), "l")
	must(t, err)
	within(t, "replicated", func() bool { return standby.Has(t, 1, `SELECT FROM feedbox.leases WHERE id = 'l'`) })
	primary.Stall(t)
	for n := range 20 {
		store(fmt.Sprint("lost", n))
	}
	position := store("lost")
	after, err := read(1, before.Continuation)
	must(t, err)
	for n := range 50 {
		_, err = pool.Exec(t.Context(), insertEvent, 1<<29, "other", fmt.Sprint("other", n), `{}`)
		must(t, err)
	}
	_, err = read(1, after.Continuation) // remembered: nothing up to the events of the other range
	must(t, err)
	primary.Kill(t)
	standby.Promote(t)
	retry(t, func() error { _, err := db.Clock(t.Context()); return err })
	pool.Reset()

	if _, err := read(0, after.Continuation); true {
		ahead, _ := errors.AsType[*changefeed.AheadError](err)
		if ahead == nil || !ahead.Lost || ahead.Term == before.Term {
			t.Errorf("a position that the new primary has not reached: %v", err)
		}
	}
	if _, err := (postgres.Leases{DB: db}).Replace(t.Context(), lease); !errors.Is(err, changefeed.ErrETagMismatch) {
		t.Errorf("a lease from before the failover was replaced, error %v", err)
	}
	now, err := postgres.Leases{DB: db}.Read(t.Context(), "l")
	must(t, err)
	if now.Term == lease.Term || now.Term == "" {
		t.Errorf("term %q after %q", now.Term, lease.Term)
	}
	for xid := uint64(0); xid <= position; { // the last id is between the position and the end of the remembered gap
		xid = store(fmt.Sprint("new", xid))
	}
	page, err := read(1, after.Continuation)
	must(t, err)
	if len(page.Items) == 0 || page.Term != now.Term {
		t.Errorf("after %s, %d events and term %s, want those of the new primary and term %s", after.Continuation, len(page.Items), page.Term, now.Term)
	}
}

// After a failover an address may lead to the old primary for some seconds, which is a standby by then. No
// connection to it is used again, because the pool would keep it for an hour.
func TestConnectionToAStandbyIsNotKept(t *testing.T) {
	t.Parallel()
	primary := servers.StartPostgres(t)
	openAt(t, primary.Database(t))
	url := primary.URLWith(primary.Standby(t), 1)
	hosts := strings.Split(strings.Split(strings.Split(url, "@")[1], "/")[0], ",")
	for name, write := range map[string]func(db *postgres.DB) error{
		"the term": func(db *postgres.DB) error { _, err := postgres.Leases{DB: db}.List(t.Context(), ""); return err },
		"a statement": func(db *postgres.DB) error {
			_, err := baskets(t, db, &recordstore.Options{Attempts: 1}).Create(t.Context(), recordstoretest.Opening(""))
			return err
		},
		"a batch": func(db *postgres.DB) error {
			_, err := parked.Store{Records: postgres.Parked{DB: db}}.Park(t.Context(), "k", []relay.ParkedEvent{{ID: "e", Document: []byte("{}")}}, &relay.Closing{Event: "e"})
			return err
		},
	} {
		var failed bool
		var used error
		db, err := postgres.Open(strings.Replace(url, "&target_session_attrs=read-write", "", 1), &postgres.DBOptions{Used: func(err error) { used = err }, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			if failed {
				return new(net.Dialer).DialContext(ctx, network, hosts[0])
			}
			return new(net.Dialer).DialContext(ctx, network, hosts[1])
		}})
		must(t, err)
		t.Cleanup(db.Close)
		if failed = write(db) != nil; !failed || used == nil {
			t.Fatalf("%s on a standby: failed %v, reported as %v", name, failed, used)
		}
		if err := write(db); err != nil {
			t.Errorf("%s, when the address leads to the primary: %v", name, err)
		}
	}
}

// The rights are public unless they are revoked. Then positions are only compared with the last id.
func TestRoleWithoutRightsReadsWithoutTerms(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t)
	url := server.Database(t)
	db, pool := openAt(t, url)
	_, err := pool.Exec(t.Context(), `REVOKE EXECUTE ON FUNCTION pg_control_system(), pg_walfile_name(pg_lsn) FROM PUBLIC; `+postgres.Roles("feedbox"))
	must(t, err)
	lean, err := postgres.Open(strings.Replace(url, "feedbox@", "feedbox_relay@", 1), nil)
	must(t, err)
	t.Cleanup(lean.Close)
	must(t, lean.Verify(t.Context()))

	var away atomic.Bool // while the process starts
	away.Store(true)
	late, err := postgres.Open(strings.Replace(url, "feedbox@", "feedbox_relay@", 1), &postgres.DBOptions{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if away.Load() {
			return nil, errors.New("connection refused")
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}})
	must(t, err)
	t.Cleanup(late.Close)
	if _, err := (postgres.Leases{DB: late}).List(t.Context(), ""); err == nil {
		t.Error("no error without a connection")
	}
	away.Store(false)
	_, err = postgres.Leases{DB: late}.List(t.Context(), "")
	must(t, err)

	for db, blind := range map[*postgres.DB]bool{db: false, lean: true} {
		if s, err := db.State(t.Context()); err != nil || s.Blind != blind {
			t.Errorf("state %+v, error %v; blind should be %t", s, err, blind)
		}
	}
	feed, err := postgres.NewFeed(lean, &postgres.FeedOptions{Ranges: 1})
	must(t, err)
	page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange()})
	must(t, err)
	if page.Term != "" {
		t.Errorf("term %q", page.Term)
	}
	leasetest.Run(t, func(*testing.T) changefeed.LeaseStore { return postgres.Leases{DB: lean} })
	_, err = feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: `"999999999"`})
	if ahead, _ := errors.AsType[*changefeed.AheadError](err); ahead == nil {
		t.Errorf("a position that the server has not reached: %v", err)
	}
}

// cluster is a primary with a standby, writers, and two hosts that deliver the events.
type cluster struct {
	primary, standby *servers.Postgres
	synchronous      bool
	url              string
	pool             *pgxpool.Pool
	random           *rand.Rand

	mu        sync.Mutex // guards the fields below
	acked     []string   // ids
	delivered map[string]int
	order     map[string][]string // first deliveries by key
}

func newCluster(t *testing.T, synchronous bool) *cluster {
	t.Helper()
	c := &cluster{synchronous: synchronous, random: rand.New(rand.NewPCG(seedOf(t), 0)), delivered: map[string]int{}, order: map[string][]string{}}
	c.primary = servers.StartPostgres(t)
	_, pool := openAt(t, c.primary.Database(t))
	_, err := pool.Exec(t.Context(), `CREATE TABLE public.orders (id text PRIMARY KEY, sequence bigint)`)
	must(t, err)
	c.standby = c.primary.Standby(t)
	c.protect(t)
	c.url = c.primary.URLWith(c.standby, 1)
	c.pool, err = pgxpool.New(t.Context(), c.url+"&search_path=feedbox")
	must(t, err)
	t.Cleanup(c.pool.Close)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, host := range []string{"a", "b"} {
		db, err := postgres.Open(c.url, nil)
		must(t, err)
		t.Cleanup(db.Close)
		feed, err := postgres.NewFeed(db, &postgres.FeedOptions{Hold: 50 * time.Millisecond})
		must(t, err)
		p, err := changefeed.New(feed, postgres.Leases{DB: db}, changefeed.Each(c.deliver), &changefeed.Options{Processor: "p", Host: host, Expiry: 4 * time.Second, PollMin: time.Millisecond})
		must(t, err)
		running.Go(func() {
			for ctx.Err() == nil {
				if err := p.Run(ctx); err != nil && ctx.Err() == nil {
					t.Errorf("host %s: %v", host, err)
					return
				}
			}
		})
	}
	for w := range 6 {
		running.Go(func() { c.write(ctx, w) })
	}
	t.Cleanup(func() { cancel(); running.Wait() })
	return c
}

// protect makes commits wait for the standby.
func (c *cluster) protect(t *testing.T) {
	t.Helper()
	if c.synchronous {
		c.primary.Set(t, "synchronous_standby_names = '*'")
	}
}

// write stores events of keys that no other writer has.
func (c *cluster) write(ctx context.Context, w int) {
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("w%d.%d", w, n%3)
		id := fmt.Sprintf("%s-%d-%d", key, n, time.Now().UnixNano())
		timed, cancel := context.WithTimeout(ctx, 3*time.Second)
		_, err := c.pool.Exec(timed, `WITH o AS (INSERT INTO public.orders VALUES ($2::text, 1) ON CONFLICT (id) DO UPDATE SET sequence = orders.sequence + 1 RETURNING sequence)
			INSERT INTO events (hash, key, id, document) SELECT $1::int, $2::text, $3::text, json_build_object('id', $3::text, 'key', $2::text, 'sequence', sequence)::text FROM o`,
			w<<20, key, id)
		cancel()
		pause := 15 * time.Millisecond
		if err == nil {
			c.mu.Lock()
			c.acked = append(c.acked, id)
			c.mu.Unlock()
		} else {
			pause = 20 * time.Millisecond
		}
		time.Sleep(pause)
	}
}

func (c *cluster) deliver(_ context.Context, change changefeed.Item) error {
	var e struct{ ID, Key string }
	if err := json.Unmarshal(change.Raw, &e); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.delivered[e.ID]++; c.delivered[e.ID] == 1 {
		c.order[e.Key] = append(c.order[e.Key], e.ID)
	}
	return nil
}

// failOver kills the primary and promotes the standby, and verifies the result. It returns the
// numbers of events that were lost although they were delivered or acknowledged. Those are removed
// from the records, so that each failover is judged on its own.
func (c *cluster) failOver(t *testing.T) (ghosts, lost int) {
	t.Helper()
	c.more(t, 50)
	end := c.primary.Kill
	if c.synchronous {
		end = c.primary.PowerOff
	} else {
		c.primary.Stall(t)
		c.mu.Lock()
		n := len(c.acked)
		c.mu.Unlock()
		within(t, "an event that the standby lacks is delivered", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return slices.ContainsFunc(c.acked[n:], func(id string) bool { return c.delivered[id] > 0 })
		})
	}
	time.Sleep(time.Duration(50+c.random.IntN(400)) * time.Millisecond)
	end(t)
	c.standby.Promote(t)
	c.primary, c.standby = c.standby, c.primary
	c.more(t, 50)
	c.standby.Follow(t, c.primary)
	c.protect(t)
	c.mu.Lock()
	acked, delivered := slices.Clone(c.acked), slices.Collect(maps.Keys(c.delivered))
	c.mu.Unlock()
	rows, err := c.pool.Query(t.Context(), `SELECT id, (document::json ->> 'sequence')::bigint FROM events`)
	must(t, err)
	stored := map[string]int64{} // the sequence by id
	var id string
	var sequence int64
	_, err = pgx.ForEachRow(rows, []any{&id, &sequence}, func() error { stored[id] = sequence; return nil })
	must(t, err)
	missed := len(stored)
	for deadline := time.Now().Add(time.Minute); missed > 0 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		missed = 0
		c.mu.Lock()
		for id := range stored {
			if c.delivered[id] == 0 {
				missed++
			}
		}
		c.mu.Unlock()
	}
	if missed > 0 {
		t.Fatalf("%d of %d events of the new primary are not delivered", missed, len(stored))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, ids := range c.order {
		last := int64(0)
		for _, id := range ids {
			if sequence, there := stored[id]; there {
				if sequence < last {
					t.Errorf("key %s: %d is delivered after %d", key, sequence, last)
				}
				last = sequence
			}
		}
	}
	for _, id := range acked {
		if _, there := stored[id]; !there {
			lost++
		}
	}
	for _, id := range delivered {
		if _, there := stored[id]; !there {
			ghosts++
			delete(c.delivered, id)
		}
	}
	c.acked = slices.DeleteFunc(c.acked, func(id string) bool { _, there := stored[id]; return !there && slices.Contains(acked, id) })
	return ghosts, lost
}

// more waits until n more events are acknowledged.
func (c *cluster) more(t *testing.T, n int) {
	t.Helper()
	now := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.acked)
	}
	before := now()
	within(t, "more events", func() bool { return now() >= before+n })
}
