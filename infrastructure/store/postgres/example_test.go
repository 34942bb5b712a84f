package postgres_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"feedbox/changefeed"
	"feedbox/infrastructure/store/document/contacts"
	"feedbox/infrastructure/store/postgres"
	"feedbox/infrastructure/store/recordstore"
)

// A service migrates the schema and commits changes through units of work. A relay reads the
// events from the feed.
func Example() {
	ctx := context.Background()
	db, err := postgres.Open("postgres://feedbox:secret@localhost:5432/shop?sslmode=verify-full", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(ctx); err != nil {
		log.Fatal(err)
	}
	work, err := recordstore.NewUnitsOfWork(postgres.Records{DB: db}, contacts.Kind(), nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	unit, err := work.Begin("")
	if err != nil {
		log.Fatal(err)
	}
	_ = unit // Add or Read an aggregate, change it, and Commit

	feed, err := postgres.NewFeed(db, &postgres.FeedOptions{Hold: 250 * time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	ranges, _ := feed.Ranges(ctx)
	page, err := feed.Read(ctx, changefeed.ReadRequest{Range: ranges[0], MaxItems: 100})
	if err != nil {
		log.Fatal(err)
	}
	for _, item := range page.Items {
		fmt.Println(item.LSN, string(item.Key), string(item.Raw))
	}
}

// A service with tables of its own adds an event to its transaction. The transaction begins on its own
// pool, with pgx or database/sql.
func ExampleEmit() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://shop:secret@localhost:5432/shop?sslmode=verify-full")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE orders SET state = 'paid' WHERE id = $1`, "order-7"); err != nil {
			return err
		}
		// Last, because other transactions with the key wait from here until the commit.
		return postgres.Emit(ctx, tx, "order-7", postgres.Event{Action: "OrderPaid", Data: map[string]int{"amount": 120}})
	})
	if err != nil {
		log.Fatal(err)
	}
}
