package postgres_test

import (
	"context"
	"fmt"
	"log"
	"time"

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
