package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"feedbox/application/command"
	"feedbox/application/query"
	"feedbox/application/relay"
	"feedbox/domain/aggregate"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/infrastructure/relay/relayservice"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/postgres"
	"feedbox/infrastructure/store/recordstore"
	"feedbox/infrastructure/store/recordstore/parked"
	"feedbox/tests/servers"
)

// Bloat changes aggregates, PerSecond times a second, relays their events to a sink, and prints
// the size of the tables every minute. All rows expire after TTL.
type Bloat struct {
	For, TTL  time.Duration
	PerSecond int
	Out       io.Writer
}

// parcel is an aggregate with events of the same size as those of the backlog.
type parcel struct {
	aggregate.Root
}

type (
	parcelState struct{}
	parcelMoved struct {
		Fill string `json:"fill"`
	}
)

// Action implements event.Payload.
func (parcelMoved) Action() string { return "ParcelMovedEvent" }

func parcels() *document.Kind[*parcel] {
	return document.JSON[*parcel, parcelState]{
		Type: "parcel", State: func(*parcel) parcelState { return parcelState{} },
		Restore: func(root aggregate.Root, _ parcelState) (*parcel, error) { return &parcel{root}, nil },
		Events:  []document.EventCodec{document.JSONEvent[parcelMoved]()},
	}.Kind()
}

// parcelsAlive is the number of aggregates. Each is changed about once in ten seconds.
const parcelsAlive = 2000

// Run runs until For is over or ctx ends.
func (b Bloat) Run(ctx context.Context) error {
	return inLab(ctx, func(ctx context.Context, l *lab) error {
		url := servers.StartPostgres(l).Database(l)
		db, err := postgres.Open(url, nil)
		if err != nil {
			return err
		}
		defer db.Close()
		if err := db.Migrate(ctx); err != nil {
			return err
		}
		work, err := recordstore.NewUnitsOfWork(postgres.Records{DB: db}, parcels(), nil, &recordstore.Options{EventTTL: b.TTL, RequestTTL: b.TTL, AuditTTL: b.TTL, DeletedTTL: b.TTL})
		if err != nil {
			return err
		}
		sent := &sink{}
		service, err := b.relay(db, sent)
		if err != nil {
			return err
		}
		ctx, stop := context.WithTimeout(ctx, b.For)
		defer stop()
		running, ctx := errgroup.WithContext(ctx)
		running.Go(func() error { return service.Run(ctx) })
		var written atomic.Int64
		for range 4 {
			running.Go(func() error { return b.write(ctx, work, &written) })
		}
		running.Go(func() error { return b.watch(ctx, url, &written, sent) })
		err = running.Wait()
		if errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
		return err
	})
}

func (b Bloat) relay(db *postgres.DB, to relayport.Publisher) (*relayservice.Service, error) {
	feed, err := postgres.NewFeed(db, &postgres.FeedOptions{Hold: 250 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(b.Out, &slog.HandlerOptions{Level: slog.LevelWarn}))
	decoder := document.EventDecoder{}
	return relayservice.New(relayport.Store{
		Name: "postgres", Feed: feed, Decoder: decoder, Events: recordstore.Events{Store: postgres.Records{DB: db}, Decoder: decoder}, Leases: postgres.Leases{DB: db},
		Parked: parked.Store{Records: postgres.Parked{DB: db}}, Verify: db.Verify, Upkeep: postgres.Upkeep{DB: db, Log: log, Held: feed.Held}.Run, Held: feed.Held,
	}, relayport.Broker{
		Name: "sink", System: "sink", Destination: "sink",
		Open: func(*slog.Logger, func(context.Context, relay.BatchReport)) (relayport.Publisher, error) {
			return to, nil
		},
	}, &relayservice.Options{EventTTL: b.TTL, Logger: log})
}

// sink accepts and counts events.
type sink struct{ atomic.Int64 }

// Publish implements relay.Publisher.
func (s *sink) Publish(_ context.Context, groups []relay.Group) error {
	for _, g := range groups {
		s.Add(int64(len(g.Messages)))
	}
	return nil
}

// Close implements relayport.Publisher.
func (*sink) Close(context.Context) error { return nil }

// write creates, changes and deletes parcels at a quarter of the rate.
func (b Bloat) write(ctx context.Context, work *recordstore.UnitsOfWork[*parcel], written *atomic.Int64) error {
	fill := parcelMoved{strings.Repeat("x", 256)}
	var mine []uuid.UUID
	tick := time.NewTicker(4 * time.Second / time.Duration(b.PerSecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		w, err := work.Begin("")
		if err != nil {
			return err
		}
		place := rand.IntN(parcelsAlive / 4)
		var p *parcel
		if place >= len(mine) {
			root, err := aggregate.New(uuid.New(), "")
			if err != nil {
				return err
			}
			p = &parcel{root}
			mine = append(mine, p.ID())
			err = w.Add(ctx, p)
			if err != nil {
				return err
			}
		} else if p, err = w.Read(ctx, mine[place], nil); err != nil {
			return b.ended(ctx, err)
		} else if rand.IntN(20) == 0 { // it is delivered
			p.MarkDeleted()
			mine[place] = mine[len(mine)-1]
			mine = mine[:len(mine)-1]
		}
		aggregate.Record(&p.Root, fill, uuid.New(), time.Now())
		pending, _ := p.Pending()
		err = errors.Join(
			w.(command.Journal).NoteRequest(command.Request{ID: uuid.NewString(), AggregateID: p.ID(), Hash: "hash", CommandID: uuid.New(), CreatedAt: time.Now(), Version: pending.Version}),
			w.(command.Journal).NoteAudit(query.AuditEntry{AggregateID: p.ID(), Version: pending.Version, At: time.Now(), Principal: "bench"}),
		)
		if err != nil {
			return err
		}
		if _, err := w.Commit(ctx); err != nil {
			return b.ended(ctx, err)
		}
		written.Add(1)
	}
}

// ended ignores an error that the end of ctx has caused.
func (Bloat) ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

const sizesQuery = `SELECT relname, n_live_tup, n_dead_tup, pg_relation_size(relid), pg_indexes_size(relid), autovacuum_count
	FROM pg_stat_user_tables WHERE schemaname = 'feedbox' AND relname IN ('events', 'aggregates', 'requests', 'audits', 'leases') ORDER BY relname`

// watch prints the contents of the tables every minute.
func (b Bloat) watch(ctx context.Context, url string, written *atomic.Int64, sent *sink) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	began := time.Now()
	_, _ = fmt.Fprintln(b.Out, "minute  written  relayed  table       rows    dead  table_kB  indexes_kB  vacuums")
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		rows, err := pool.Query(ctx, sizesQuery)
		if err != nil {
			return b.ended(ctx, err)
		}
		for rows.Next() {
			var table string
			var live, dead, size, indexes, vacuums int64
			if err := rows.Scan(&table, &live, &dead, &size, &indexes, &vacuums); err != nil {
				return err
			}
			_, _ = fmt.Fprintf(b.Out, "%6.0f  %7d  %7d  %-10s  %6d  %6d  %8d  %10d  %7d\n", time.Since(began).Minutes(), written.Load(), sent.Load(), table, live, dead, size>>10, indexes>>10, vacuums)
		}
		if err := rows.Err(); err != nil {
			return b.ended(ctx, err)
		}
	}
}
