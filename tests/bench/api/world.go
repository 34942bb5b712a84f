package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/event"
	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/domain/contact"
	"feedbox/infrastructure/cosmos"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/telemetry"
)

// world is one emulator, one API over it, and the workers of both sides. Each
// worker has contacts of its own, so that no update meets another one.
type world struct {
	emulator  *cosmosemu.Server
	container *azcosmos.ContainerClient
	ids       []uuid.UUID
	closers   []func() error

	apiWorkers, bareWorkers []worker
}

func newWorld(ctx context.Context, c Config) (w *world, err error) {
	w = &world{}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.emulator, err = cosmosemu.Start(nil); err != nil {
		return w, err
	}
	w.closers = append(w.closers, w.emulator.Close)
	props := cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1}
	if err = w.emulator.CreateContainer("contacts", props); err != nil {
		return w, err
	}
	// One transport for both sides: as many idle connections as clients.
	transport := &http.Transport{MaxIdleConnsPerHost: 4 * c.Clients}
	w.closers = append(w.closers, func() error { transport.CloseIdleConnections(); return nil })
	client, err := cosmos.NewClient(cosmos.ClientConfig{
		Endpoint: w.emulator.Endpoint(), Key: w.emulator.Key(),
		Options: azcore.ClientOptions{Transport: &http.Client{Transport: transport}},
	})
	if err != nil {
		return w, err
	}
	if w.container, err = client.NewContainer("contacts", "data"); err != nil {
		return w, err
	}
	m, err := w.application()
	if err != nil {
		return w, err
	}
	if err = w.createContacts(ctx, m, c.Contacts); err != nil {
		return w, err
	}
	address, err := w.serve(ctx, m)
	if err != nil {
		return w, err
	}
	return w, w.addWorkers(ctx, c, address)
}

func (w *world) application() (*mediator.Mediator, error) {
	m := mediator.New()
	event.Subscribe(m)
	work, workErr := cosmos.NewUnitsOfWork(w.container, m, nil)
	reader, readerErr := cosmos.NewContactReader(w.container)
	if err := errors.Join(workErr, readerErr); err != nil {
		return nil, err
	}
	return m, errors.Join(
		command.Register(m, command.Ports{Work: work, IDs: uuid.New, Now: time.Now}),
		query.Register(m, query.Ports{Contacts: reader}),
	)
}

func (w *world) createContacts(ctx context.Context, m *mediator.Mediator, count int) error {
	description, email := "A contact of the benchmark, with a description of usual length.", "jane@contoso.example"
	for range count {
		created, err := mediator.Send(ctx, m, command.CreateContact{
			FirstName: "Jane", LastName: "Doe", Description: &description, Email: &email,
			Company: contact.CompanyFields{CompanyName: "Contoso"},
		})
		if err != nil {
			return err
		}
		w.ids = append(w.ids, created.Contact.ID)
	}
	return nil
}

// serve runs the API as production does: with metrics, spans and an access
// log, which goes nowhere.
func (w *world) serve(ctx context.Context, m *mediator.Mediator) (address string, err error) {
	tel, err := telemetry.Start(ctx, "feedbox-bench", nil)
	if err != nil {
		return "", err
	}
	logger, err := telemetry.NewLogger(discard{}, &telemetry.LogOptions{Format: "json"})
	if err != nil {
		return "", err
	}
	server, err := httpapi.New(m, &httpapi.Options{Logger: logger, Meters: tel.Meters, Tracers: tel.Tracers})
	if err != nil {
		return "", err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- server.Run(serving, listener) }()
	w.closers = append(w.closers, func() error {
		stop()
		return errors.Join(<-ended, tel.Shutdown(context.WithoutCancel(ctx)))
	})
	return listener.Addr().String(), nil
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// addWorkers deals the contacts out: both sides get the same ones, since they
// take turns.
func (w *world) addWorkers(ctx context.Context, c Config, address string) error {
	for i := range c.Clients {
		var own []uuid.UUID
		for j := i; j < len(w.ids); j += c.Clients {
			own = append(own, w.ids[j])
		}
		if len(own) == 0 {
			return fmt.Errorf("%d contacts are too few for %d clients", len(w.ids), c.Clients)
		}
		client, err := dialRaw(ctx, address)
		if err != nil {
			return err
		}
		w.closers = append(w.closers, client.Close)
		w.apiWorkers = append(w.apiWorkers, client.updates(own))
		w.bareWorkers = append(w.bareWorkers, bareUpdates(w.container, own))
	}
	return nil
}

// verify counts what is stored: each update must have raised a version and
// left one event.
func (w *world) verify(ctx context.Context, updates int64) error {
	var versions int64
	for _, id := range w.ids {
		reply, err := w.container.ReadItem(ctx, azcosmos.NewPartitionKeyString(id.String()), id.String(), nil)
		if err != nil {
			return err
		}
		var document struct {
			Data struct {
				Version, Sequence int64
			} `json:"data"`
		}
		if err := json.Unmarshal(reply.Value, &document); err != nil {
			return err
		}
		if document.Data.Version != document.Data.Sequence {
			return fmt.Errorf("contact %s has version %d and sequence %d", id, document.Data.Version, document.Data.Sequence)
		}
		versions += document.Data.Version - 1
	}
	if versions != updates {
		return fmt.Errorf("%d updates were answered, %d are stored", updates, versions)
	}
	return nil
}

func (w *world) close() {
	for i := len(w.closers) - 1; i >= 0; i-- {
		_ = w.closers[i]()
	}
}
