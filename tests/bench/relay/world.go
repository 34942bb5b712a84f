package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"go.uber.org/fx"
	"golang.org/x/sync/errgroup"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/changefeed/memstore"
	"feedbox/infrastructure/config"
	"feedbox/infrastructure/cosmos"
	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/servicebus"
	"feedbox/infrastructure/wiring"
)

const topic = "contacts"

// world is both emulators with the topology of the service.
type world struct {
	s      settings
	dir    string
	cosmos *cosmosemu.Server
	bus    *busemu.Server
}

func newWorld(s settings) (*world, error) {
	w := &world{s: s}
	var cosmosOptions cosmosemu.Options
	var busOptions busemu.Options
	if s.Disk {
		var err error
		if w.dir, err = os.MkdirTemp("", "feedbox-bench-"); err != nil {
			return nil, err
		}
		cosmosOptions.DataDir, busOptions.DataDir = w.dir+"/cosmos", w.dir+"/servicebus"
	}
	var err error
	if w.cosmos, err = cosmosemu.Start(&cosmosOptions); err != nil {
		return nil, err
	}
	if w.bus, err = busemu.Start(&busOptions); err != nil {
		return nil, err
	}
	return w, errors.Join(
		w.cosmos.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1, Partitions: s.Partitions}),
		w.cosmos.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "leases", PartitionKey: []string{"/id"}}),
		w.cosmos.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "parked", PartitionKey: []string{"/partitionKey"}}),
		w.createTopic(topic), w.createTopic("floor"),
	)
}

func (w *world) createTopic(name string) error {
	ctx := context.Background()
	return errors.Join(
		w.bus.CreateTopic(ctx, name, busemu.TopicProperties{RequiresDuplicateDetection: true, MaxSizeMB: 80 * 1024}),
		w.bus.CreateSubscription(ctx, name, "all", busemu.SubscriptionProperties{RequiresSession: true}),
	)
}

func (w *world) close() {
	_ = w.bus.Close()
	_ = w.cosmos.Close()
	if w.dir != "" {
		_ = os.RemoveAll(w.dir)
	}
}

func key(contact int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", contact) }

func eventID(contact, n int) string { return fmt.Sprintf("%08x-0000-4000-9000-%012d", n, contact) }

// document is an event as the service stores it, its data filled up to size.
func document(s settings, contact, n int) []byte {
	data := fmt.Sprintf(`{"name":{"firstName":"Jane","lastName":"Doe"},"contactId":"%s","action":"ContactNameUpdatedEvent","id":"%s","createdAt":"2026-11-21T12:00:00Z","aggregateVersion":%d,"sequence":%d,"fill":""}`,
		key(contact), eventID(contact, n), n, n)
	if fill := s.Size - len(data); fill > 0 {
		data = strings.Replace(data, `"fill":""`, `"fill":"`+strings.Repeat("x", fill)+`"`, 1)
	}
	return fmt.Appendf(nil, `{"id":"%s","partitionKey":"%s","type":"domainEvent","data":%s,"ttl":864000}`, eventID(contact, n), key(contact), data)
}

// fill stores the events of each contact in one transactional batch.
func (w *world) fill(ctx context.Context) error {
	container, err := w.cosmos.Client().NewContainer("contacts", "data")
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for contact := range w.s.Contacts {
		group.Go(func() error {
			batch := container.NewTransactionalBatch(azcosmos.NewPartitionKeyString(key(contact)))
			for n := range w.s.Events {
				batch.CreateItem(document(w.s, contact, n+1), nil)
			}
			reply, err := container.ExecuteTransactionalBatch(ctx, batch, nil)
			if err == nil && !reply.Success {
				err = errors.New("a batch of the fill was refused")
			}
			return err
		})
	}
	return group.Wait()
}

// readOnly drains the feed through the processor with a handler that does nothing.
func (w *world) readOnly(ctx context.Context) error {
	feed, err := cosmosfeed.NewFeed(w.feedClient(), "contacts", "data", nil)
	if err != nil {
		return err
	}
	var seen atomic.Int64
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, err := changefeed.New(feed, memstore.New(nil), changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
		if seen.Add(int64(len(b.Items))) >= int64(w.s.Contacts*w.s.Events) {
			cancel()
		}
		return nil
	}), &changefeed.Options{MaxItems: maxItems, PollMin: 10 * time.Millisecond})
	if err != nil {
		return err
	}
	return p.Run(ctx)
}

func (w *world) feedClient() *azcosmos.Client {
	credential, err := azcosmos.NewKeyCredential(w.cosmos.Key())
	if err != nil {
		panic(err) // the emulator's own key
	}
	client, err := azcosmos.NewClientWithKey(w.cosmos.Endpoint(), credential, cosmosfeed.ClientOptions(w.cosmos.ClientOptions()))
	if err != nil {
		panic(err) // the emulator's own endpoint
	}
	return client
}

// maxItems is the page size of the measured relay and of its floor.
const maxItems = 1000

// sendOnly publishes the same events in the same batches, from memory.
func (w *world) sendOnly(ctx context.Context) error {
	client, err := servicebus.NewClient(servicebus.ClientConfig{ConnectionString: w.bus.ConnectionString()})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close(context.WithoutCancel(ctx)) }()
	publisher, err := servicebus.NewPublisher(client, "floor", &servicebus.PublisherOptions{PackKeys: w.s.Pack})
	if err != nil {
		return err
	}
	var decoder cosmos.EventDecoder
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(w.s.Partitions * 2)
	perCall := max(1, maxItems/w.s.Events)
	for first := 0; first < w.s.Contacts; first += perCall {
		group.Go(func() error {
			groups := make([]relay.Group, 0, perCall)
			for contact := first; contact < min(first+perCall, w.s.Contacts); contact++ {
				g := relay.Group{Key: key(contact)}
				for n := range w.s.Events {
					m, _, err := decoder.Decode(document(w.s, contact, n+1))
					if err != nil {
						return err
					}
					g.Messages = append(g.Messages, m)
				}
				groups = append(groups, g)
			}
			return publisher.Publish(ctx, groups)
		})
	}
	return group.Wait()
}

// relay runs the service's own relay until the broker has accepted everything.
func (w *world) relay(ctx context.Context) error {
	cfg, err := config.LoadRelay([]string{
		"FEEDBOX_COSMOS_ENDPOINT=" + w.cosmos.Endpoint(), "FEEDBOX_COSMOS_KEY=" + w.cosmos.Key(),
		"FEEDBOX_SERVICEBUS_CONNECTION_STRING=" + w.bus.ConnectionString(),
		fmt.Sprintf("FEEDBOX_SERVICEBUS_PACK_KEYS=%v", w.s.Pack),
		fmt.Sprintf("FEEDBOX_RELAY_MAX_ITEMS=%d", maxItems),
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1) // buffered: nobody waits for the stop, which is not measured
	app := fx.New(wiring.Relay(cfg, wiring.Surroundings{Log: slog.New(slog.DiscardHandler)}))
	go func() { done <- wiring.Run(ctx, app, nil) }()
	want := int64(w.s.Contacts * w.s.Events)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
		}
		c, err := w.bus.Counters(topic)
		if err != nil {
			return err
		}
		if c.Accepted-c.Duplicates >= want {
			break
		}
	}
	return nil
}

// cpu is the time this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
