package main

import (
	"context"
	"errors"
	"feedbox/application/command"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/infrastructure/relay/relayservice"
	"feedbox/infrastructure/store/recordstore"
	"log/slog"
	"os"
	"time"

	"github.com/google/uuid"

	"example.com/orders/open"
	"example.com/orders/order"
	"example.com/orders/store"
)

// keeper is a store of orders and totals: the code that an adopter writes for another store.
type keeper interface {
	orders() (*store.Orders, error)
	events() (relayport.Store, error)
	totals(ctx context.Context) (consumer.Inbox, counter, error)
	// total and stored are for tests.
	total(ctx context.Context, id string) (open.Total, error)
	stored(ctx context.Context) ([]verify.Aggregate, []verify.Event, error)
}

// counter is open.Totals.Count.
type counter = func(ctx context.Context, e *consumer.Event, change func(t *open.Total)) error

// carrier is a broker: the code that an adopter writes for another broker.
type carrier interface {
	broker() (relayport.Broker, error)
	consumer(handler consumer.Handler, inbox consumer.Inbox) (interface {
		Run(ctx context.Context) error
	}, error)
}

// runOn runs a part of the service on a pair.
func runOn(ctx context.Context, part string, k keeper, c carrier) error {
	switch part {
	case "serve":
		orders, err := k.orders()
		if err != nil {
			return err
		}
		return listen(ctx, orders)
	case "relay":
		expiry, _ := time.ParseDuration(os.Getenv("ORDERS_LEASE_EXPIRY")) // none: the default
		events, err := k.events()
		broker, wrong := c.broker()
		if err := errors.Join(err, wrong); err != nil {
			return err
		}
		service, err := relayservice.New(events, broker, &relayservice.Options{Expiry: expiry, PollMax: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		return service.Run(ctx)
	default:
		inbox, count, err := k.totals(ctx)
		if err != nil {
			return err
		}
		handler, err := open.Handler(count)
		processor, wrong := c.consumer(logged(handler), inbox)
		if err := errors.Join(err, wrong); err != nil {
			return err
		}
		return processor.Run(ctx)
	}
}

// ordersIn returns the orders of a store of rows.
func ordersIn(table recordstore.Store) (*store.Orders, error) {
	work, err := recordstore.NewUnitsOfWork(table, store.Kind.Kind(), nil, nil)
	reader, wrong := recordstore.NewJSONReader[order.State](table, store.Type)
	namespace := uuid.MustParse("2f6f0c57-5a0e-4f0e-9c64-0d6f0f1f7a52")
	service := command.Service[*order.Order]{Work: work, IDs: uuid.New, Now: time.Now, Noun: store.Type, Namespace: namespace}
	return &store.Orders{Service: service, Reader: reader}, errors.Join(err, wrong)
}
