package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/cosmosemu"
)

// The demo topology. The names are the defaults of the service's configuration.
const (
	database     = "contacts"
	data         = "data"
	leases       = "leases"
	parked       = "parked"
	topic        = "contacts"
	subscription = "all"
	recording    = "record" // created by --record, emptied by dump

	duplicateWindow = 10 * time.Minute
)

// emulators are the two running emulators with the demo topology.
type emulators struct {
	cosmos *cosmosemu.Server
	bus    *busemu.Server
}

// startEmulators serves both emulators on the bound listeners. The emulators then own them.
func startEmulators(ctx context.Context, opts *options, l *listeners, log *slog.Logger) (*emulators, error) {
	cosmosDir, busDir := "", ""
	if !opts.ephemeral {
		cosmosDir, busDir = filepath.Join(opts.dataDir, "cosmos"), filepath.Join(opts.dataDir, "servicebus")
	}
	var more *busemu.Topology
	if opts.config != "" {
		var err error
		if more, err = busemu.LoadConfig(opts.config); err != nil {
			return nil, usageError{fmt.Errorf("--config: %w; give a Config.json of the official Service Bus emulator", err)}
		}
	}
	certificate, err := opts.certificate(l)
	if err != nil {
		return nil, err
	}
	e := &emulators{}
	cosmos := &cosmosemu.Options{
		Listener: l.cosmos, Host: reachable(l.cosmos), AllowedHosts: opts.allowed, DataDir: cosmosDir, Logger: log.With("emulator", "cosmos"),
		VersionRetention: opts.cosmosVersions, ContainerRetention: opts.cosmosRetention, Throughput: opts.throttle,
	}
	if opts.cosmosCert != "" {
		cosmos.TLS, cosmos.Certificate = true, &certificate.Config().Certificates[0]
	}
	e.cosmos, err = cosmosemu.Start(cosmos)
	if err != nil {
		return nil, fmt.Errorf("start the Cosmos DB emulator: %w", adviseStore(cosmosDir, err))
	}
	bus := &busemu.Options{
		Listener: l.serviceBus, AdminListener: l.serviceBusAdmin, Host: reachable(l.serviceBus), AllowedHosts: opts.allowed,
		EndIdle: opts.serviceBusIdle, CreditsPerSecond: opts.serviceBusCosts, Premium: opts.serviceBusUnits > 0, MessagingUnits: opts.serviceBusUnits,
		DataDir: busDir, Topology: more, Logger: log.With("emulator", "servicebus"),
	}
	if opts.serviceBusCert != "" {
		bus.TLS, bus.AdminTLS = certificate.Config(), certificate.Config()
	}
	if opts.tuneBus != nil {
		opts.tuneBus(bus)
	}
	e.bus, err = busemu.Start(bus)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the Service Bus emulator: %w", adviseStore(busDir, err)), e.cosmos.Close())
	}
	// The emulators own them now. If the caller closed them, the emulators would report failures.
	l.cosmos, l.serviceBus, l.serviceBusAdmin = nil, nil, nil
	if err := e.ensureTopology(ctx, opts); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// unwritable has the errors of a folder that cannot be written.
var unwritable = []error{fs.ErrPermission, fs.ErrNotExist, syscall.ENOTDIR, syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT}

// adviseStore adds advice about the data folder to an emulator's start error. dir is "" for
// an emulator in memory.
func adviseStore(dir string, err error) error {
	switch {
	case err == nil || dir == "":
		return err
	case errors.Is(err, syscall.EAGAIN):
		return fmt.Errorf("the data folder %s is in use by another process: stop that process, or give another --data-dir: %w", dir, err)
	case slices.ContainsFunc(unwritable, func(cause error) bool { return errors.Is(err, cause) }):
		return fmt.Errorf("the data folder %s cannot be written: make it writable, give another --data-dir, or use --ephemeral: %w", dir, err)
	}
	return fmt.Errorf("%w; if the data is damaged, move the folder %s away to start empty, or restore a copy", err, dir)
}

// ensureTopology creates missing containers and entities. It does not change existing ones.
func (e *emulators) ensureTopology(ctx context.Context, opts *options) error {
	containers := []cosmosemu.ContainerProps{
		{ID: data, PartitionKey: []string{relayKeys[data]}, DefaultTTL: -1, Partitions: opts.partitions},
		{ID: leases, PartitionKey: []string{relayKeys[leases]}, Partitions: 1},
		{ID: parked, PartitionKey: []string{relayKeys[parked]}, Partitions: 1},
	}
	for _, more := range opts.containers {
		name, key, _ := strings.Cut(more, "=")
		containers = append(containers, cosmosemu.ContainerProps{ID: name, PartitionKey: []string{cmp.Or(key, "/partitionKey")}, DefaultTTL: -1, Partitions: opts.partitions})
	}
	for _, c := range containers {
		if err := e.cosmos.CreateContainer(opts.database, c); err != nil {
			return err
		}
	}
	subscriptions := append([]string{topic + "/" + subscription}, opts.topics...)
	if opts.record {
		subscriptions = append(subscriptions, topic+"/"+recording)
	}
	for _, path := range subscriptions {
		of, name, _ := strings.Cut(path, "/")
		if err := e.bus.CreateTopic(ctx, busemu.Topic{
			Name: of, RequiresDuplicateDetection: true, DuplicateDetectionWindow: duplicateWindow,
		}); err != nil {
			return err
		}
		if err := e.bus.CreateSubscription(ctx, of, busemu.Subscription{
			Name: cmp.Or(name, subscription), RequiresSession: true, DeadLetteringOnExpiration: true,
		}); err != nil {
			return err
		}
	}
	return nil
}

// errDisk means that an emulator can no longer store data durably.
var errDisk = errors.New("an emulator cannot write its data")

// watch runs do, and cancels it when the disk of an emulator fails.
func (e *emulators) watch(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		var name string
		var err error
		select {
		case err = <-e.cosmos.Failed():
			name = "Cosmos DB"
		case err = <-e.bus.Failed():
			name = "Service Bus"
		case <-ctx.Done():
			return
		}
		end(fmt.Errorf("%w: %s: %w; make sure that the disk has space and the folder is writable, then start again: nothing acknowledged is lost", errDisk, name, err))
	}()
	err := do(ctx)
	end(nil)
	<-watched
	if cause := context.Cause(ctx); errors.Is(cause, errDisk) {
		return errors.Join(cause, err)
	}
	return err
}

func (e *emulators) close() error { return errors.Join(e.bus.Close(), e.cosmos.Close()) }

// endpoints returns the endpoints of the emulators, for other processes.
func (e *emulators) endpoints(database string) endpoints {
	return endpoints{
		PID:            os.Getpid(),
		CosmosEndpoint: e.cosmos.Endpoint(), CosmosKey: e.cosmos.Key(),
		ServiceBusConnectionString: e.bus.ConnectionString(), ServiceBusAdmin: e.bus.AdminURL(),
		Database: database, Container: data, Leases: leases, Parked: parked,
		Topic: topic, Subscription: subscription,
	}
}
