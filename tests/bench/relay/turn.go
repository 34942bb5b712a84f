package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.uber.org/fx"
	"golang.org/x/sync/errgroup"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/wiring"
	"feedbox/tests/bench/measure"
)

// maxItems is the page size of the measured relay and of its floor.
const maxItems = 1000

// turnTimeout is the maximum length of a turn. A longer turn has lost an event.
const turnTimeout = 2 * time.Minute

// relayAlone measures relays that send the backlog to a new broker.
func (st *store) relayAlone(ctx context.Context) (measure.Sample, error) {
	return st.turn(ctx, nil)
}

// relayAndReceive does the same with a consumer that completes every message, and verifies
// the received messages.
func (st *store) relayAndReceive(ctx context.Context, sessions bool) (measure.Sample, error) {
	got := receiver{sessions: sessions}
	sample, err := st.turn(ctx, &got)
	if err != nil {
		return sample, err
	}
	messages, err := got.messages()
	if err != nil {
		return sample, err
	}
	run := verify.Run{Messages: messages}
	run.Aggregates, run.Events = st.shape.stored()
	if breaches := run.Verify(); len(breaches) > 0 {
		return sample, fmt.Errorf("the promises of the outbox were broken:\n%s", strings.Join(breaches, "\n"))
	}
	return sample, nil
}

// turn relays the backlog once. The clock starts when the relays own every range.
func (st *store) turn(ctx context.Context, into *receiver) (sample measure.Sample, err error) {
	b, err := openBroker(ctx, st.shape.Disk, into != nil && into.sessions)
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	if into != nil {
		if err := into.start(ctx, b, st.shape.total()); err != nil {
			return sample, err
		}
		defer func() { err = errors.Join(err, into.close()) }()
	}
	gate := make(chan struct{})
	remove := st.cosmos.Control(cosmosemu.OpReadChangeFeed, func(*cosmosemu.Call) *cosmosemu.Fault { return &cosmosemu.Fault{Hold: gate} })
	defer remove()

	relays, stop := context.WithCancel(ctx)
	running, err := st.start(relays, b)
	defer func() {
		stop()
		err = errors.Join(err, running())
	}()
	if err != nil {
		return sample, err
	}
	return measure.Took(int64(st.shape.total()), func() error {
		remove()
		close(gate)
		if into != nil {
			return into.receive(ctx)
		}
		return b.accepted(ctx, st.shape.total())
	})
}

// start starts the relays and waits until they have balanced the ranges. running waits until
// they have stopped.
func (st *store) start(ctx context.Context, b *broker) (running func() error, err error) {
	st.relays++
	parked := fmt.Sprintf("parked%d", st.relays) // a new processor needs parked events of its own
	group, ctx := errgroup.WithContext(ctx)
	if err := st.cosmos.CreateContainer(database, cosmosemu.ContainerProps{ID: parked, PartitionKey: []string{"/partitionKey"}}); err != nil {
		return group.Wait, err
	}
	var owned ownership
	for i := range st.shape.Relays {
		cfg, err := config.LoadRelay([]string{
			"FEEDBOX_COSMOS_ENDPOINT=" + st.cosmos.Endpoint(), "FEEDBOX_COSMOS_KEY=" + st.cosmos.Key(),
			"FEEDBOX_SERVICEBUS_CONNECTION_STRING=" + b.bus.ConnectionString(),
			fmt.Sprintf("FEEDBOX_SERVICEBUS_PACK_KEYS=%v", st.shape.Pack),
			fmt.Sprintf("FEEDBOX_RELAY_MAX_ITEMS=%d", maxItems),
			fmt.Sprintf("FEEDBOX_PROCESSOR=bench%d", st.relays), "FEEDBOX_COSMOS_PARKED=" + parked,
			fmt.Sprintf("FEEDBOX_INSTANCE=relay%d", i),
		})
		if err != nil {
			return group.Wait, err
		}
		app := fx.New(wiring.Relay(cfg, wiring.Params{Log: slog.New(owned.of(i))}))
		group.Go(func() error { return wiring.Run(ctx, app, nil) })
	}
	return group.Wait, owned.wait(ctx, st.shape.Relays, st.shape.Partitions)
}

// accepted waits until the broker has accepted want messages, each once.
func (b *broker) accepted(ctx context.Context, want int) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := b.bus.Counters(topic)
		switch {
		case err != nil:
			return err
		case c.Accepted-c.Duplicates >= int64(want):
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d events were accepted: %w", c.Accepted-c.Duplicates, want, ctx.Err())
		}
	}
}
