package changefeed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/emulator/cosmosemu"
)

// order is a document of the examples' container shop/orders.
type order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Total    int    `json:"total"`
}

// must ends an example that cannot continue.
func must(err error) {
	if err != nil {
		log.Panic(err)
	}
}

// shop starts an emulator. Its container shop/orders, with the partition key /customer,
// holds some orders; shop/leases is empty. It returns the arguments of changefeed.New.
func shop(orders ...order) (feed *cosmosfeed.Feed, leases *cosmosfeed.LeaseStore, end func()) {
	srv, err := cosmosemu.Start(nil)
	must(err)
	must(srv.CreateContainer("shop", cosmosemu.ContainerProps{ID: "orders", PartitionKey: []string{"/customer"}}))
	must(srv.CreateContainer("shop", cosmosemu.ContainerProps{ID: "leases", PartitionKey: []string{"/id"}}))
	client := srv.Client() // in production: azcosmos.NewClient(..., cosmosfeed.ClientOptions(nil))
	container, err := client.NewContainer("shop", "orders")
	must(err)
	for _, o := range orders {
		body, err := json.Marshal(o)
		must(err)
		_, err = container.CreateItem(context.Background(), azcosmos.NewPartitionKeyString(o.Customer), body, nil)
		must(err)
	}
	feed, err = cosmosfeed.NewFeed(client, "shop", "orders")
	must(err)
	leases, err = cosmosfeed.NewLeaseStore(client, "shop", "leases")
	must(err)
	return feed, leases, func() { must(srv.Close()) }
}

// quiet keeps a processor's log out of an example.
var quiet = slog.New(slog.DiscardHandler)

// A processor passes every change to a handler. Any number of hosts may run it under the
// same name: they share the container's ranges.
func Example() {
	feed, leases, end := shop(order{"1", "ann", 12}, order{"2", "bob", 7}, order{"3", "ann", 30})
	defer end()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()

	left := 3
	handler := changefeed.Each(func(_ context.Context, change changefeed.Item) error {
		var o order
		if err := json.Unmarshal(change.Raw, &o); err != nil {
			return changefeed.Refuse(err) // the document is at fault: tried a few times only
		}
		fmt.Printf("order %s of %s\n", o.ID, o.Customer)
		if left--; left == 0 {
			stop()
		}
		return nil
	})
	p, err := changefeed.New(feed, leases, handler, &changefeed.Options{Processor: "mailer", Logger: quiet})
	must(err)
	fmt.Println("ended:", p.Run(ctx))
	// Output:
	// order 1 of ann
	// order 2 of bob
	// order 3 of ann
	// ended: <nil>
}

// Typed decodes the documents first. A document that does not fit the type is refused
// automatically and stops only its key; the others are handled.
func ExampleTyped() {
	feed, leases, end := shop(order{"1", "ann", 12}, order{"2", "bob", 7})
	defer end()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()

	sum := 0
	handler := changefeed.Typed(func(_ context.Context, batch *changefeed.Batch, orders []order) error {
		for _, o := range orders {
			sum += o.Total
		}
		if len(batch.Items) == 2 {
			stop()
		}
		return nil
	})
	p, err := changefeed.New(feed, leases, handler, &changefeed.Options{Processor: "sums", Logger: quiet})
	must(err)
	must(p.Run(ctx))
	fmt.Println("total:", sum)
	// Output: total: 19
}

// A manual handler decides when its position is stored. Changes after that position are
// delivered again to the next host, here a second run.
func ExampleManual() {
	feed, leases, end := shop(order{"1", "ann", 12}, order{"2", "bob", 7})
	defer end()

	handled := 0
	run := func(name string, save bool) {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		handler := changefeed.Manual(func(ctx context.Context, batch *changefeed.Batch, checkpoint changefeed.Checkpoint) error {
			handled += len(batch.Items) // collected; a real handler would write them somewhere in one go
			fmt.Println(name, "got", len(batch.Items))
			if save {
				must(checkpoint(ctx))
			}
			stop()
			return nil
		})
		p, err := changefeed.New(feed, leases, handler, &changefeed.Options{Processor: "export", Logger: quiet})
		must(err)
		must(p.Run(ctx))
	}
	run("first run", false)
	run("second run", true)
	tokens, err := changefeed.NewOperator(feed, leases, &changefeed.OperatorOptions{Processor: "export"}).Export(context.Background())
	must(err)
	fmt.Println("handled", handled, "stored:", tokens[0].Continuation != "")
	// Output:
	// first run got 2
	// second run got 2
	// handled 4 stored: true
}

// A handler answers for each document: done, refused, or waiting. Only the key of a
// document that is not done waits; the other keys continue.
func ExampleBatch_Answer() {
	feed, leases, end := shop(order{"1", "ann", -5}, order{"2", "bob", 7}, order{"3", "eve", 9})
	defer end()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()

	bankOpen := false
	handler := changefeed.Typed(func(_ context.Context, batch *changefeed.Batch, orders []order) error {
		for i, o := range orders {
			switch {
			case o.Total < 0: // will never be right
				batch.Answer(i, changefeed.Refuse(errors.New("negative total")))
			case o.Customer == "bob" && !bankOpen:
				batch.Answer(i, changefeed.WaitUntil(time.Now().Add(20*time.Millisecond), errors.New("bank closed")))
			default:
				batch.Answer(i, nil)
				fmt.Println("charged", o.Customer)
				if o.Customer == "bob" {
					stop()
				}
			}
		}
		return nil
	})
	p, err := changefeed.New(feed, leases, handler, &changefeed.Options{
		Processor: "bank", Logger: quiet, MaxAttempts: 2, RetryMin: 10 * time.Millisecond,
		DeadLetter: func(_ context.Context, letter changefeed.DeadLetter) error {
			fmt.Printf("gave up order %s after %d attempts: %v\n", letter.ID, letter.Attempts, letter.Err)
			bankOpen = true
			return nil
		},
	})
	must(err)
	must(p.Run(ctx))
	// Output:
	// charged eve
	// gave up order 1 after 2 attempts: negative total
	// charged bob
}

// An operator inspects the leases and sends requests to their owners, from any process.
func ExampleOperator() {
	feed, leases, end := shop(order{"1", "ann", 12}, order{"2", "bob", 7})
	defer end()
	ctx := context.Background()
	run := func() (handled int) {
		ctx, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		handler := changefeed.HandlerFunc(func(_ context.Context, batch *changefeed.Batch) error {
			handled += len(batch.Items)
			stop()
			return nil
		})
		p, err := changefeed.New(feed, leases, handler, &changefeed.Options{Processor: "mailer", Logger: quiet})
		must(err)
		must(p.Run(ctx))
		return handled
	}
	fmt.Println("handled:", run())

	operator := changefeed.NewOperator(feed, leases, &changefeed.OperatorOptions{Processor: "mailer"})
	lag, err := operator.Lag(ctx)
	must(err)
	fmt.Printf("leases: %d, waiting: %d, owner: %q\n", len(lag), lag[0].Transactions, lag[0].Owner)

	must(operator.Rewind(ctx, changefeed.FromBeginning())) // the lease is unowned: applied by the next owner
	fmt.Println("handled again:", run())
	// Output:
	// handled: 2
	// leases: 1, waiting: 0, owner: ""
	// handled again: 2
}
