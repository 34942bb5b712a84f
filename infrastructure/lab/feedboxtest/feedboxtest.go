// Package feedboxtest runs a store, a broker and a relay for the tests of a service on Feedbox.
//
//	s := feedboxtest.Start(t, nil)
//	... the service commits events to s.Container("data")
//	events := s.Received(3) // in the order of each key
//
// Start starts both emulators with the containers of a relay, a topic with duplicate detection and
// session subscriptions, a relay, and a receiver with a subscription of its own. They are connected in
// memory, so they also run in a testing/synctest bubble. With Options.Loopback other processes can
// connect to the emulators.
//
// Goroutines: the relay and the receiver. The end of the test stops them and waits for them.
package feedboxtest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox"
	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
)

// TB is implemented by *testing.T and *testing.B.
type TB interface {
	Helper()
	Cleanup(func())
	Context() context.Context
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Options name what a service needs. Zero values are the defaults.
type Options struct {
	// Database and Topic. Defaults "shop" and "events".
	Database, Topic string
	// Containers are additional ones besides data, leases and parked, with the same partition key
	// and TTL as data.
	Containers []string
	// IndexingPolicies are the JSON texts of the deployed policies by container. Queries are checked
	// against them as on Azure. Default: all properties are indexed, without composite indexes.
	IndexingPolicies map[string]string
	// Subscriptions are those of the service's consumers, with sessions. The receiver has another.
	Subscriptions []string
	// Loopback makes the emulators listen on ports of the loopback interface, for processes that a
	// test starts. Not in a testing/synctest bubble.
	Loopback bool
	// NoRelay starts neither relay nor receiver, for tests of the service's own.
	NoRelay bool
	// Logger of relay and receiver. Default: discarded.
	Logger *slog.Logger
}

// System is a running system. Its fields must not be changed.
type System struct {
	Cosmos     *azcosmos.Client         // with the containers data, leases and parked
	ServiceBus feedbox.ServiceBusConfig // for consumers and relays of the test
	Relay      *feedbox.Relay           // nil with NoRelay
	// Store and Broker are the emulators, for faults and connection strings.
	Store  *cosmosemu.Server
	Broker *busemu.Server

	t       TB
	options Options

	mu       sync.Mutex // guards received
	received []feedbox.Event
}

// receiver is the subscription of the receiver.
const receiver = "feedboxtest"

// waitLimit is how long a test waits for a condition. It is long, because the machine may be busy.
const waitLimit = time.Minute

// Start starts a system and stops it at the end of the test.
func Start(t TB, o *Options) *System {
	t.Helper()
	s := &System{t: t}
	if o != nil {
		s.options = *o
	}
	s.options.Database, s.options.Topic = cmp.Or(s.options.Database, "shop"), cmp.Or(s.options.Topic, "events")
	if s.options.Logger == nil {
		s.options.Logger = slog.New(slog.DiscardHandler)
	}
	s.startEmulators()
	if !s.options.NoRelay {
		s.startRelay()
	}
	return s
}

func (s *System) startEmulators() {
	s.t.Helper()
	network, addr := pipenet.New(), "-"
	if s.options.Loopback {
		network, addr = nil, ""
	}
	s.Store = cosmosemu.StartT(s.t, &cosmosemu.Options{Network: network})
	client, err := feedbox.NewCosmosClient(feedbox.CosmosConfig{
		Endpoint: s.Store.Endpoint(), Key: s.Store.Key(), Options: azcore.ClientOptions{Transport: s.Store.HTTPClient()},
	})
	s.must(err)
	s.t.Cleanup(client.Close)
	s.Cosmos = client
	for _, name := range append([]string{"data", "leases", "parked"}, s.options.Containers...) {
		props := cosmosemu.ContainerProps{ID: name, PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1, IndexingPolicy: s.options.IndexingPolicies[name]}
		switch name {
		case "leases":
			props.PartitionKey, props.DefaultTTL = []string{"/id"}, 0
		case "parked":
			props.DefaultTTL = 0
		}
		s.must(s.Store.CreateContainer(s.options.Database, props))
	}
	s.Broker = busemu.StartT(s.t, &busemu.Options{Addr: addr, AdminAddr: "-"})
	topic := busemu.Topic{Name: s.options.Topic, RequiresDuplicateDetection: true}
	names := s.options.Subscriptions
	if !s.options.NoRelay {
		names = append([]string{receiver}, names...)
	}
	for _, name := range names {
		topic.Subscriptions = append(topic.Subscriptions, busemu.Subscription{Name: name, RequiresSession: true})
	}
	s.must(s.Broker.CreateTopic(s.t.Context(), topic))
	s.ServiceBus = feedbox.ServiceBusConfig{
		ConnectionString: s.Broker.ConnectionString(),
		Dial: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			return s.Broker.Dial(ctx)
		},
	}
}

func (s *System) startRelay() {
	s.t.Helper()
	bus, err := feedbox.NewServiceBusClient(s.ServiceBus)
	s.must(err)
	s.Relay, err = feedbox.NewRelay(s.Cosmos, &feedbox.Containers{Database: s.options.Database}, bus, &feedbox.Topics{Topic: s.options.Topic},
		&feedbox.RelayOptions{PollMax: 50 * time.Millisecond, Logger: s.options.Logger})
	s.must(err)
	consumer, err := feedbox.NewConsumer(s.ServiceBus, s.options.Topic, receiver, s.receive, &feedbox.ConsumerOptions{Logger: s.options.Logger})
	s.must(err)
	ctx, stop := context.WithCancel(context.WithoutCancel(s.t.Context()))
	var running sync.WaitGroup
	for name, run := range map[string]func(context.Context) error{"relay": s.Relay.Run, "receiver": consumer.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				s.t.Errorf("feedboxtest: the %s ended: %v", name, err)
			}
		})
	}
	s.t.Cleanup(func() {
		stop()
		running.Wait()
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitLimit)
		defer cancel()
		if err := bus.Close(closing); err != nil {
			s.t.Errorf("feedboxtest: %v", err)
		}
	})
}

// Container returns a container of the database.
func (s *System) Container(name string) *azcosmos.ContainerClient {
	s.t.Helper()
	container, err := s.Cosmos.NewContainer(s.options.Database, name)
	s.must(err)
	return container
}

// Outbox returns the outbox of the container data.
func (s *System) Outbox() *feedbox.Outbox {
	s.t.Helper()
	outbox, err := feedbox.NewOutbox(s.Container("data"), nil)
	s.must(err)
	return outbox
}

// Received waits until the receiver has received n events, and returns all that it has received in
// the order of arrival, which is that of the sequences within each key. The test fails after a
// minute, with what has arrived.
func (s *System) Received(n int) []feedbox.Event {
	s.t.Helper()
	if s.Relay == nil {
		s.t.Fatalf("feedboxtest: Received needs a relay: NoRelay is set")
	}
	var events []feedbox.Event
	arrived := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		events = append(events[:0], s.received...)
		return len(events) >= n
	}
	if !s.poll(arrived) {
		var names []string
		for _, e := range events {
			names = append(names, e.Action+" of "+e.Key)
		}
		s.t.Fatalf("feedboxtest: %d of %d events arrived within %s: %s; relay: %v", len(events), n, waitLimit, strings.Join(names, ", "), cmp.Or(s.Relay.Ready(), errReady))
	}
	return events
}

// WaitFor waits until ok returns true. The test fails after a minute.
func (s *System) WaitFor(what string, ok func() bool) {
	s.t.Helper()
	if !s.poll(ok) {
		s.t.Fatalf("feedboxtest: not after %s: %s", waitLimit, what)
	}
}

var errReady = errors.New("ready")

func (s *System) poll(ok func() bool) bool {
	limit, tick := time.NewTimer(waitLimit), time.NewTicker(10*time.Millisecond)
	defer limit.Stop()
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit.C:
			return ok()
		case <-s.t.Context().Done():
			return false
		}
	}
	return true
}

func (s *System) receive(_ context.Context, e *feedbox.Event) error {
	event := *e
	event.Body = bytes.Clone(e.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received = append(s.received, event)
	return nil
}

func (s *System) must(err error) {
	if err != nil {
		s.t.Helper()
		s.t.Fatalf("feedboxtest: %v", err)
	}
}
