package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"
	"go.uber.org/fx"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/telemetry"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/wiring"
	"feedbox/tests/bench/measure"
)

// store is the place of the emulator's data.
type store string

const (
	memory store = "memory"
	disk   store = "disk" // fsynced before a write is acknowledged
)

// world has one emulator, one API, and the workers of all sides. Each worker has its own
// contacts, so that updates do not conflict.
type world struct {
	emulator  *cosmosemu.Server
	container *azcosmos.ContainerClient
	ids       []uuid.UUID
	updates   atomic.Int64 // answered
	closers   []func() error

	apiWorkers, servedWorkers, bareWorkers []worker
}

// worker makes one update.
type worker = func(ctx context.Context) error

func newWorld(ctx context.Context, at store, contacts int) (w *world, err error) {
	w = &world{}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	var options cosmosemu.Options
	if at == disk {
		if options.DataDir, err = os.MkdirTemp("", "feedbox-bench-*"); err != nil {
			return w, err
		}
		w.closers = append(w.closers, func() error { return os.RemoveAll(options.DataDir) })
	}
	if w.emulator, err = cosmosemu.Start(&options); err != nil {
		return w, err
	}
	w.closers = append(w.closers, w.emulator.Close)
	props := cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{cosmos.PartitionKeyPath}, DefaultTTL: -1}
	if err = w.emulator.CreateContainer("contacts", props); err != nil {
		return w, err
	}
	client, err := cosmos.NewClient(cosmos.ClientConfig{
		Endpoint: w.emulator.Endpoint(), Key: w.emulator.Key(), Options: azcore.ClientOptions{Transport: w.transport()},
	})
	if err != nil {
		return w, err
	}
	if w.container, err = client.NewContainer("contacts", "data"); err != nil {
		return w, err
	}
	if err = w.createContacts(ctx, contacts); err != nil {
		return w, err
	}
	address, err := w.serve(ctx)
	if err != nil {
		return w, err
	}
	served, err := w.serveBare(ctx)
	if err != nil {
		return w, err
	}
	return w, w.addWorkers(ctx, address, served)
}

// transport returns an HTTP client with one idle connection per client of the load.
func (w *world) transport() *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 4 * clients}
	w.closers = append(w.closers, func() error { transport.CloseIdleConnections(); return nil })
	return &http.Client{Transport: transport}
}

// serve runs the API as in production with default settings. Its log is formatted and
// discarded.
func (w *world) serve(ctx context.Context) (address string, err error) {
	cfg, err := config.LoadAPI([]string{"FEEDBOX_COSMOS_ENDPOINT=" + w.emulator.Endpoint(), "FEEDBOX_COSMOS_KEY=" + w.emulator.Key(), "FEEDBOX_API_DRAIN_DELAY=0s"})
	if err != nil {
		return "", err
	}
	log, err := telemetry.NewLogger(io.Discard, &telemetry.LogOptions{Format: "json"})
	if err != nil {
		return "", err
	}
	sockets, err := wiring.Listen(ctx, "127.0.0.1:0", "")
	if err != nil {
		return "", err
	}
	app := fx.New(wiring.API(cfg, wiring.Params{Sockets: sockets, Log: log, CosmosTransport: w.transport()}))
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	started, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- wiring.Run(serving, app, func() { close(started) }) }()
	select {
	case <-started:
	case err := <-ended:
		stop()
		return "", errors.Join(errors.New("the API did not start"), err)
	}
	w.closers = append(w.closers, func() error { stop(); return <-ended })
	return sockets.API.Addr().String(), nil
}

// addWorkers assigns contacts to workers. All sides get the same ones, because they take
// turns.
func (w *world) addWorkers(ctx context.Context, api, served string) error {
	for i := range clients {
		var own []uuid.UUID
		for j := i; j < len(w.ids); j += clients {
			own = append(own, w.ids[j])
		}
		if len(own) == 0 {
			return fmt.Errorf("%d contacts are too few for %d clients", len(w.ids), clients)
		}
		for _, over := range []struct {
			side, address string
			into          *[]worker
		}{{"API", api, &w.apiWorkers}, {"HTTP", served, &w.servedWorkers}} {
			client, err := dialRaw(ctx, over.address)
			if err != nil {
				return err
			}
			w.closers = append(w.closers, client.Close)
			*over.into = append(*over.into, client.updates(over.side, own))
		}
		w.bareWorkers = append(w.bareWorkers, bareUpdates(w.container, own))
	}
	return nil
}

// api is a turn of the API.
func (w *world) api(length time.Duration) measure.Turn { return w.turn(length, w.apiWorkers) }

// served is a turn of the loop behind net/http.
func (w *world) served(length time.Duration) measure.Turn { return w.turn(length, w.servedWorkers) }

// bare is a turn of the bare loop.
func (w *world) bare(length time.Duration) measure.Turn { return w.turn(length, w.bareWorkers) }

func (w *world) turn(length time.Duration, workers []worker) measure.Turn {
	return func(ctx context.Context) (measure.Sample, error) {
		s, err := measure.Loop(ctx, length, workers...)
		w.updates.Add(s.Operations)
		return s, err
	}
}

func (w *world) close() error {
	var errs []error
	for i := len(w.closers) - 1; i >= 0; i-- {
		errs = append(errs, w.closers[i]())
	}
	w.closers = nil
	return errors.Join(errs...)
}
