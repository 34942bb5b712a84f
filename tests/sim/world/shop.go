package world

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos"
)

// shops is the common state of all shops. A shop is a process that changes orders through the write
// side directly, without an API, and may crash at any time.
type shops struct {
	mu      sync.Mutex // guards the fields below
	closed  bool
	busy    int // running operations
	acked   map[string]int
	unknown map[string]int
	lost    int
	known   []uuid.UUID // orders to change
	serial  int
}

// shopWriters is the number of concurrent writers of a shop.
const shopWriters = 2

func (w *World) runShop(ctx context.Context, n *nic, name string) error {
	transport := w.transport(n)
	defer transport.CloseIdleConnections()
	client, err := cosmos.NewClient(cosmos.ClientConfig{
		Endpoint: w.endpoint(), Key: w.Cosmos().Key(),
		Options: azcore.ClientOptions{Transport: &http.Client{Transport: transport}},
	})
	if err != nil {
		return err
	}
	defer client.Close()
	container, err := client.NewContainer(Database, w.orders().data)
	if err != nil {
		return err
	}
	work, err := cosmos.NewUnitsOfWork(container, orderKind.Kind(), nil, &cosmos.Options{EventTTL: w.topology.EventTTL})
	if err != nil {
		return err
	}
	ports := &command.Service[*order]{
		Work: work, IDs: uuid.New, Now: time.Now, Noun: "order", Audit: true, Namespace: uuid.MustParse("6a1b8e6e-5a2b-4f39-8d8b-6b0a6e8c1c11"),
	}
	var writers sync.WaitGroup
	for i := range shopWriters {
		rnd := w.Random(200 + 10*uint64(len(name)) + uint64(i) + uint64(name[len(name)-1]))
		writers.Go(func() { w.sell(ctx, ports, rnd) })
	}
	writers.Wait()
	return ctx.Err()
}

// sell changes orders until ctx ends.
func (w *World) sell(ctx context.Context, ports *command.Service[*order], rnd *rand.Rand) {
	for {
		timer := time.NewTimer(time.Duration(rnd.ExpFloat64() * float64(2*time.Second)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		serial, some := w.shops.begin()
		switch n := rnd.IntN(10); {
		case some == nil || n == 0:
			w.place(ctx, ports, serial, rnd.IntN(2) == 0)
		default:
			id := some[rnd.IntN(len(some))]
			change := func(o *order) error { return o.add(1 + n%3) }
			if n == 1 && len(some) > 3 {
				change = (*order).drop
			}
			w.change(ctx, ports, id, serial, rnd.IntN(2) == 0, change)
		}
	}
}

// begin returns the number of the next operation and the orders to change.
func (s *shops) begin() (serial int, some []uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	return s.serial, append([]uuid.UUID(nil), s.known...)
}

// enter begins an operation. It returns false if the shops are closed.
func (s *shops) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.busy++
	}
	return !s.closed
}

func (w *World) place(ctx context.Context, ports *command.Service[*order], serial int, keyed bool) {
	if !w.shops.enter() {
		return
	}
	in := command.Creation[*order]{Make: placeOrder, Parts: []any{"Place"}}
	if keyed {
		in.Sender = command.Sender{Principal: "shop", IdempotencyKey: fmt.Sprintf("%d-%d-%d", w.id, w.seed, serial)}
	}
	placed, err := ports.Create(ctx, in)
	if err != nil && keyed && ctx.Err() == nil {
		placed, err = ports.Create(ctx, in) // repeat
	}
	s := &w.shops
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	switch {
	case err == nil:
		s.acked[placed.Aggregate.ID().String()]++
		s.known = append(s.known, placed.Aggregate.ID())
	case fault.KindOf(err) == fault.Gone: // impossible: the id is not known yet
		w.violation("harness: an unknown order was dropped")
	default:
		s.lost++
	}
}

func (w *World) change(ctx context.Context, ports *command.Service[*order], id uuid.UUID, serial int, keyed bool, change func(o *order) error) {
	if !w.shops.enter() {
		return
	}
	target := command.Target{ID: id}
	if keyed {
		target.Sender = command.Sender{Principal: "shop", IdempotencyKey: fmt.Sprintf("c%d-%d-%d", w.id, w.seed, serial)}
	}
	_, err := ports.Update(ctx, target, change, "Change", serial)
	refused := errors.Is(err, errDropped) // by the first attempt; a repeat may be refused because of it
	if err != nil && keyed && ctx.Err() == nil && !refused {
		_, err = ports.Update(ctx, target, change, "Change", serial)
	}
	s := &w.shops
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	switch {
	case err == nil:
		s.acked[id.String()]++
	case refused:
	default:
		s.unknown[id.String()]++
	}
}

// close prevents further operations; idle reports whether the running ones have ended.
func (s *shops) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

func (s *shops) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy == 0
}

// Sold returns the number of acknowledged changes of orders.
func (w *World) Sold() (n int) {
	w.shops.mu.Lock()
	defer w.shops.mu.Unlock()
	for _, acked := range w.shops.acked {
		n += acked
	}
	return n
}
