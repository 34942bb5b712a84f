package world

import (
	"context"
	"errors"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/domain/fault"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/infrastructure/store/cosmos/cosmosrelay"
)

// processor is the relays' default FEEDBOX_PROCESSOR.
const processor = "feedbox"

// actLimit bounds an operator's act on one outbox.
const actLimit = 30 * time.Second

// Operate calls act for each outbox with an operator of its leases and with its store. Faults of
// the store affect it as they affect other clients. It returns the errors of all calls.
func (w *World) Operate(act func(ctx context.Context, leases *changefeed.Operator, store *relayport.Store) error) error {
	return w.operate(w.outboxes, act)
}

func (w *World) operate(outboxes []outbox, act func(ctx context.Context, leases *changefeed.Operator, store *relayport.Store) error) error {
	n := newNIC(w.network)
	defer n.kill()
	client, done, err := w.clientOf(n)
	defer done()
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range outboxes {
		store, err := cosmosrelay.NewStore(client, &cosmosrelay.Options{Database: Database, Data: o.data, Leases: o.leases, Parked: o.parked})
		if err != nil {
			return err
		}
		store.Leases = w.steps[o.leases].Store("operator", nil, store.Leases)
		ctx, cancel := context.WithTimeout(w.ctx, actLimit)
		errs = append(errs, act(ctx, changefeed.NewOperator(store.Feed, store.Leases, &changefeed.OperatorOptions{Processor: processor}), &store))
		cancel()
	}
	return errors.Join(errs...)
}

// Pause pauses all relays, until Resume or Heal.
func (w *World) Pause() error {
	w.paused.Store(true)
	return w.Operate(func(ctx context.Context, leases *changefeed.Operator, _ *relayport.Store) error {
		return leases.Pause(ctx)
	})
}

// Resume ends Pause and the pauses of single leases.
func (w *World) Resume() error {
	err := w.Operate(func(ctx context.Context, leases *changefeed.Operator, _ *relayport.Store) error {
		return errors.Join(leases.Resume(ctx), leases.ResumeLeases(ctx))
	})
	if err == nil {
		w.paused.Store(false)
	}
	return err
}

// PauseLeases pauses each current lease.
func (w *World) PauseLeases() error {
	w.paused.Store(true)
	return w.Operate(func(ctx context.Context, leases *changefeed.Operator, _ *relayport.Store) error {
		return leases.PauseLeases(ctx)
	})
}

// RetryParked asks the relays to send the parked events of every closed gate again.
func (w *World) RetryParked() error {
	return w.Operate(func(ctx context.Context, _ *changefeed.Operator, store *relayport.Store) error {
		gates, err := store.Parked.Gates(ctx)
		for _, g := range gates {
			_, failed := store.Parked.SetIntent(ctx, g.Key, relay.Intent{Verb: relay.VerbRetry, By: "simulation", At: time.Now()})
			if !fault.Is(failed, fault.NotFound) { // opened meanwhile
				err = errors.Join(err, failed)
			}
		}
		return err
	})
}

// resumeAll ends pauses that outlived the faults.
func (w *World) resumeAll() {
	if !w.paused.Load() || w.closed {
		return
	}
	var err error
	if !w.Eventually(patience, func() bool { err = w.Resume(); return err == nil }) {
		w.harness("resume: %v", err)
	}
}
