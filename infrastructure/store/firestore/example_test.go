package firestore_test

import (
	"context"
	"fmt"
	"log"

	"feedbox/changefeed"
	"feedbox/infrastructure/store/document/contacts"
	"feedbox/infrastructure/store/firestore"
	"feedbox/infrastructure/store/recordstore"
)

// A service commits changes through units of work. A relay reads the events from the feed. The
// indexes of firestore.indexes.json must be deployed before.
func Example() {
	ctx := context.Background()
	db, err := firestore.Open(ctx, firestore.Options{Project: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := db.Verify(ctx); err != nil {
		log.Fatal(err)
	}
	work, err := recordstore.NewUnitsOfWork(firestore.Records{DB: db}, contacts.Kind(), nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	unit, err := work.Begin("")
	if err != nil {
		log.Fatal(err)
	}
	_ = unit // Add or Read an aggregate, change it, and Commit

	feed, err := firestore.NewFeed(db, 4)
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
