package main

import (
	"context"
	"encoding/json"
	"errors"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/store/postgres"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/orders/open"
)

// payment is the data of an event of a table that is no aggregate.
type payment struct {
	Cents int64 `json:"cents"`
}

// pay stores a payment of an order in a table of the shop, and its event: both or neither.
func pay(ctx context.Context, pool *pgxpool.Pool, order string, p payment) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO payments VALUES ($1, $2)`, order, p.Cents); err != nil {
			return err
		}
		if err := postgres.Emit(ctx, tx, order, postgres.Event{Action: "PaymentReceived", Data: p}); err != nil {
			return err
		}
		if p.Cents%7 == 0 {
			return errBounced
		}
		return nil
	})
}

var errBounced = errors.New("the bank refuses the payment")

// Payments are rows of an own table. Several at a time are stored with their events, some are rolled
// back, and the consumer counts those that were stored.
func TestPaymentsAreCounted(t *testing.T) {
	if os.Getenv("ORDERS_TEST_POSTGRES") == "" {
		t.Skip("ORDERS_TEST_POSTGRES is not set: tests/pairs runs this test")
	}
	w := newWorld(t)
	k := w.keeper.(inPostgres)
	ctx, stop := context.WithCancel(t.Context())
	_, err := k.pool.Exec(ctx, `CREATE TABLE IF NOT EXISTS payments (id text NOT NULL, cents bigint NOT NULL)`)
	must(t, err)
	inbox, count, err := k.totals(ctx)
	must(t, err)
	processor, err := w.consumer(func(ctx context.Context, e *consumer.Event) error {
		var p payment
		if err := json.Unmarshal(e.Body, &p); err != nil {
			return err
		}
		return count(ctx, e, func(t *open.Total) { t.Pieces += p.Cents })
	}, inbox)
	must(t, err)
	var parts, payers sync.WaitGroup
	for name, part := range map[string]func(context.Context) error{
		"relay":   func(ctx context.Context) error { return runOn(ctx, "relay", w.keeper, w.carrier) },
		"consume": processor.Run,
	} {
		parts.Go(func() {
			if err := part(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	name := func(i int) string { return fmt.Sprint(os.Getenv("ORDERS_TEST_NAME"), " ", i) }
	for payer := range 4 {
		payers.Go(func() {
			for n := range 15 {
				if err := pay(ctx, k.pool, name(n%3), payment{int64(15*payer + n)}); err != nil && !errors.Is(err, errBounced) {
					t.Error(err)
				}
			}
		})
	}
	payers.Wait()
	for i := range 3 {
		var want open.Total
		must(t, k.pool.QueryRow(ctx, `SELECT count(*), sum(cents) FROM payments WHERE id = $1`, name(i)).Scan(&want.Events, &want.Pieces))
		w.eventually(fmt.Sprintf("the consumer has counted %d payments of %d cents", want.Events, want.Pieces), func() bool {
			got := w.counted(name(i))
			return got.Events == want.Events && got.Pieces == want.Pieces
		})
	}
	stop()
	parts.Wait()
}
