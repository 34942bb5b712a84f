package relay

import (
	"context"
	"errors"
	"os"

	"feedbox/infrastructure/emulator/busemu"
)

// broker is a Service Bus emulator with the topic of the service and one subscription. Every
// turn has a new one, so that the broker has no history.
type broker struct {
	dir string
	bus *busemu.Server
}

const (
	topic        = "contacts"
	subscription = "all"
)

func openBroker(ctx context.Context, disk, sessions bool) (*broker, error) {
	b := &broker{}
	var options busemu.Options
	var err error
	if disk {
		if b.dir, err = os.MkdirTemp("", "feedbox-bench-bus-"); err != nil {
			return nil, err
		}
		options.DataDir = b.dir
	}
	if b.bus, err = busemu.Start(&options); err != nil {
		return nil, errors.Join(err, os.RemoveAll(b.dir))
	}
	err = errors.Join(
		b.bus.CreateTopic(ctx, busemu.Topic{Name: topic, RequiresDuplicateDetection: true, MaxSizeMB: 80 * 1024}),
		b.bus.CreateSubscription(ctx, topic, busemu.Subscription{Name: subscription, RequiresSession: sessions}),
	)
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *broker) close() error {
	err := b.bus.Close()
	if b.dir != "" {
		err = errors.Join(err, os.RemoveAll(b.dir))
	}
	return err
}
