// Orders is an order service on Feedbox: `orders serve` runs its API, `orders relay` publishes its
// events, and `orders consume` maintains the totals of open orders.
package main

import (
	"context"
	"errors"
	"feedbox"
	"feedbox/infrastructure/httpapi"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"example.com/orders/api"
	"example.com/orders/open"
	"example.com/orders/store"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const database, topic = "shop", "orders"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "orders:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	parts := map[string]func(context.Context, *azcosmos.Client, feedbox.ServiceBusConfig) error{"serve": serve, "relay": relay, "consume": consume}
	if len(args) != 1 || parts[args[0]] == nil {
		return errors.New("usage: orders serve, relay or consume")
	}
	client, err := feedbox.NewCosmosClient(feedbox.CosmosConfig{Endpoint: os.Getenv("ORDERS_COSMOS"), Key: os.Getenv("ORDERS_COSMOS_KEY")})
	if err != nil {
		return err
	}
	return parts[args[0]](ctx, client, feedbox.ServiceBusConfig{ConnectionString: os.Getenv("ORDERS_SERVICEBUS")})
}

func serve(ctx context.Context, client *azcosmos.Client, _ feedbox.ServiceBusConfig) error {
	container, err := client.NewContainer(database, "data")
	orders, wrong := store.Open(container)
	if err := errors.Join(err, wrong); err != nil {
		return err
	}
	return listen(ctx, orders)
}

func listen(ctx context.Context, orders *store.Orders) error {
	server, err := httpapi.New([]httpapi.Resource{api.Resource(orders)}, nil)
	listener, wrong := (&net.ListenConfig{}).Listen(ctx, "tcp", os.Getenv("ORDERS_LISTEN"))
	if err := errors.Join(err, wrong); err != nil {
		return err
	}
	return server.Run(ctx, listener)
}

func relay(ctx context.Context, client *azcosmos.Client, namespace feedbox.ServiceBusConfig) error {
	bus, err := feedbox.NewServiceBusClient(namespace)
	if err != nil {
		return err
	}
	defer func() { _ = bus.Close(context.WithoutCancel(ctx)) }()
	expiry, _ := time.ParseDuration(os.Getenv("ORDERS_LEASE_EXPIRY")) // none: the default
	service, err := feedbox.NewRelay(client, &feedbox.Containers{Database: database}, bus, &feedbox.Topics{Topic: topic}, &feedbox.RelayOptions{Expiry: expiry})
	if err != nil {
		return err
	}
	return service.Run(ctx)
}

func consume(ctx context.Context, client *azcosmos.Client, bus feedbox.ServiceBusConfig) error {
	container, err := client.NewContainer(database, "totals")
	totals, wrong := open.New(container)
	handler, faulty := open.Handler(totals.Count)
	processor, refused := feedbox.NewConsumer(bus, topic, open.Name, handler, &feedbox.ConsumerOptions{Inbox: totals})
	if err := errors.Join(err, wrong, faulty, refused); err != nil {
		return err
	}
	return processor.Run(ctx)
}
