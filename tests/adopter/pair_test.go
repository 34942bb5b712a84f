package main

import (
	"context"
	"errors"
	"feedbox/application/command"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/infrastructure/relay/relayservice"
	"feedbox/infrastructure/store/recordstore"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
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
	service := command.Service[*order.Order]{Work: work, IDs: uuid.New, Now: time.Now, Noun: store.Type, Namespace: store.IDs}
	return &store.Orders{Service: service, Reader: reader}, errors.Join(err, wrong)
}

// An order passes REST, store, relay, broker and consumer in one process, on every pair.
func TestAnOrderFromRequestToTotal(t *testing.T) {
	w := newWorld(t)
	ctx, stop := context.WithCancel(t.Context())
	var parts sync.WaitGroup
	for _, name := range []string{"serve", "relay", "consume"} {
		parts.Go(func() {
			part := func() error { return runOn(ctx, name, w.keeper, w.carrier) }
			if w.azure {
				part = func() error { return run(ctx, []string{name}) }
			}
			if err := part(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	w.up()
	call := func(want int, method, path, body string, headers ...string) answer {
		t.Helper()
		a, err := w.call(t.Context(), method, path, body, headers...)
		if err != nil || a.status != want {
			t.Fatalf("%s %s: status %d, %v; want %d", method, path, a.status, err, want)
		}
		return a
	}
	placed := call(http.StatusCreated, http.MethodPost, "", `{"customer":"Contoso"}`, "Idempotency-Key", "k1")
	again := call(http.StatusOK, http.MethodPost, "", `{"customer":"Contoso"}`, "Idempotency-Key", "k1")
	if again.view.ID != placed.view.ID || placed.view.Version != 1 {
		t.Errorf("placed %+v, again %+v", placed, again)
	}
	one := "/" + placed.view.ID
	added := call(http.StatusNoContent, http.MethodPost, one+"/add", `{"sku":"pen","pieces":15,"price":100}`, "If-Match", placed.etag)
	call(http.StatusPreconditionFailed, http.MethodPost, one+"/add", `{"sku":"pen","pieces":1,"price":100}`, "If-Match", placed.etag)
	call(http.StatusUnprocessableEntity, http.MethodPost, one+"/add", `{"sku":"","pieces":0,"price":-1}`)
	call(http.StatusConflict, http.MethodPost, one+"/add", `{"sku":"yacht","pieces":2,"price":999999}`)
	read := call(http.StatusOK, http.MethodGet, one, "")
	if read.view.Version != 2 || read.view.Total != 1500 || len(read.view.Lines) != 2 || read.etag != added.etag {
		t.Errorf("read %+v", read)
	}

	w.eventually("the consumer has counted three events", func() bool { return w.counted(placed.view.ID).Events == 3 })
	if w.store != nil { // the consumer must not treat an unreadable total as a missing one
		var refused atomic.Bool
		w.store.Control(cosmosemu.OpReadItem, func(c *cosmosemu.Call) *cosmosemu.Fault {
			if c.Container != "totals" || c.ID != open.Name+"-total" || refused.Swap(true) {
				return nil
			}
			return &cosmosemu.Fault{Status: http.StatusForbidden, Message: "injected by the test"}
		})
		defer func() {
			if !refused.Load() {
				t.Error("the consumer was not refused")
			}
		}()
	}
	call(http.StatusNoContent, http.MethodPost, one+"/ship", "")
	call(http.StatusConflict, http.MethodPost, one+"/cancel", "")
	call(http.StatusNotFound, http.MethodGet, "/5cb6a1a6-6a19-4ac5-a1f9-70b0f4bfe9c7", "")

	w.eventually("the consumer has counted the four events", func() bool { return w.counted(placed.view.ID).Events == 4 })
	if total := w.counted(placed.view.ID); total.Open || total.Pieces != 15 {
		t.Errorf("the consumer has stored %+v", total)
	}
	stop()
	parts.Wait()
}
