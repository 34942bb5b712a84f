package cosmosfeed_test

import (
	"context"
	"fmt"
	"log/slog"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/emulator/cosmosemu"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// must ends an example that cannot continue.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// shop starts an emulator with the containers shop/orders and shop/leases, and one order.
func shop() *cosmosemu.Server {
	srv, err := cosmosemu.Start(nil)
	must(err)
	must(srv.CreateContainer("shop", cosmosemu.ContainerProps{ID: "orders", PartitionKey: []string{"/customer"}}))
	must(srv.CreateContainer("shop", cosmosemu.ContainerProps{ID: "leases", PartitionKey: []string{"/id"}}))
	orders, err := srv.Client().NewContainer("shop", "orders")
	must(err)
	_, err = orders.CreateItem(context.Background(), azcosmos.NewPartitionKeyString("ann"), []byte(`{"id":"1","customer":"ann"}`), nil)
	must(err)
	return srv
}

// A processor reads the change feed of one container and keeps its leases in another. Against
// Azure only the client differs: azcosmos.NewClient(endpoint, credential,
// cosmosfeed.ClientOptions(nil)).
func Example() {
	srv := shop()
	defer srv.Close()
	credential, err := azcosmos.NewKeyCredential(srv.Key())
	must(err)
	client, err := azcosmos.NewClientWithKey(srv.Endpoint(), credential, cosmosfeed.ClientOptions(srv.ClientOptions()))
	must(err)
	feed, err := cosmosfeed.NewFeed(client, "shop", "orders")
	must(err)
	leases, err := cosmosfeed.NewLeaseStore(client, "shop", "leases")
	must(err)

	ctx, stop := context.WithCancel(context.Background())
	handler := changefeed.Each(func(_ context.Context, order changefeed.Item) error {
		fmt.Println("order of", string(order.Key))
		stop() // a service stops on SIGTERM instead
		return nil
	})
	p, err := changefeed.New(feed, leases, handler, &changefeed.Options{
		Processor: "mailer", Logger: slog.New(slog.DiscardHandler),
	})
	must(err)
	fmt.Println("ended:", p.Run(ctx))
	// Output:
	// order of "ann"
	// ended: <nil>
}

// A Feed can also be read without a processor, one page at a time.
func ExampleFeed_Read() {
	srv := shop()
	defer srv.Close()
	feed, err := cosmosfeed.NewFeed(srv.Client(), "shop", "orders")
	must(err)
	ranges, err := feed.Ranges(context.Background())
	must(err)
	for _, r := range ranges {
		page, err := feed.Read(context.Background(), changefeed.ReadRequest{Range: r})
		must(err)
		fmt.Println(len(page.Items), "changes in range", r)
	}
	// Output: 1 changes in range -FF
}
