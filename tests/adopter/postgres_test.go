package main

import (
	"context"
	"errors"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/postgresinbox"
	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/infrastructure/store/postgres"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/orders/open"
	"example.com/orders/store"
)

// inPostgres stores orders in a database of PostgreSQL.
type inPostgres struct {
	db   *postgres.DB
	pool *pgxpool.Pool // for the consumer, which could use its own database
}

func openPostgres(ctx context.Context, url string) (inPostgres, error) {
	db, err := postgres.Open(url, nil)
	pool, wrong := pgxpool.New(ctx, url)
	return inPostgres{db, pool}, errors.Join(err, wrong)
}

// create creates the tables in an empty database.
func (k inPostgres) create(ctx context.Context) error {
	_, err := k.pool.Exec(ctx, `CREATE TABLE IF NOT EXISTS totals (id text PRIMARY KEY, open boolean NOT NULL, pieces bigint NOT NULL, events bigint NOT NULL)`)
	return errors.Join(err, k.db.Migrate(ctx))
}

func (k inPostgres) orders() (*store.Orders, error) { return ordersIn(postgres.Records{DB: k.db}) }

func (k inPostgres) events() (relayport.Store, error) {
	return postgres.NewRelayStore(k.db, &postgres.RelayStoreOptions{Log: slog.New(slog.DiscardHandler)})
}

func (k inPostgres) totals(ctx context.Context) (consumer.Inbox, counter, error) {
	inbox, err := postgresinbox.New(k.pool, open.Name, nil)
	if err == nil {
		err = inbox.Create(ctx)
	}
	return inbox, func(ctx context.Context, e *consumer.Event, change func(t *open.Total)) error {
		return inbox.Do(ctx, e, func(ctx context.Context, tx pgx.Tx) error {
			t, err := readTotal(ctx, tx, e.Key)
			if err != nil && !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			change(&t)
			t.Events++
			_, err = tx.Exec(ctx, `INSERT INTO totals VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO UPDATE SET open = EXCLUDED.open, pieces = EXCLUDED.pieces, events = EXCLUDED.events`,
				e.Key, t.Open, t.Pieces, t.Events)
			return err
		})
	}, err
}

func readTotal(ctx context.Context, q interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, id string,
) (t open.Total, err error) {
	return t, q.QueryRow(ctx, `SELECT open, pieces, events FROM totals WHERE id = $1`, id).Scan(&t.Open, &t.Pieces, &t.Events)
}

func (k inPostgres) total(ctx context.Context, id string) (open.Total, error) {
	return readTotal(ctx, k.pool, id)
}

func (k inPostgres) stored(ctx context.Context) (aggregates []verify.Aggregate, events []verify.Event, err error) {
	found, _ := k.pool.Query(ctx, `SELECT id::text, version, sequence FROM feedbox.aggregates`)
	if aggregates, err = pgx.CollectRows(found, pgx.RowToStructByPos[verify.Aggregate]); err != nil {
		return nil, nil, err
	}
	found, _ = k.pool.Query(ctx, `SELECT document FROM feedbox.events`)
	events, err = pgx.CollectRows(found, func(row pgx.CollectableRow) (verify.Event, error) {
		var raw string
		if err := row.Scan(&raw); err != nil {
			return verify.Event{}, err
		}
		d, err := verify.DecodeDocument([]byte(raw))
		return d.Event(), err
	})
	return aggregates, events, err
}
