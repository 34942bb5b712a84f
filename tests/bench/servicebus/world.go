package servicebus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/tests/bench/measure"
)

const (
	queueName = "bench"
	bodySize  = 512
)

// kind is the kind of a broker.
type kind string

const (
	floorKind  kind = "floor"
	syncedKind kind = "floor with fsync" // writes each transfer to a file and syncs it
	memoryKind kind = "memory"
	diskKind   kind = "disk"
)

// broker is a broker for one turn, with a client.
type broker struct {
	kind   kind
	client *azservicebus.Client
	emu    *busemu.Server // nil for a floor
	floor  *floor
	dir    string
}

// startBroker starts a broker with one queue.
func startBroker(k kind, queue busemu.Queue) (*broker, error) {
	b := &broker{kind: k}
	connection, err := b.start(queue)
	if err == nil {
		b.client, err = azservicebus.NewClientFromConnectionString(connection, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", k, errors.Join(err, b.stop()))
	}
	return b, nil
}

func (b *broker) start(queue busemu.Queue) (connection string, err error) {
	if b.kind == diskKind || b.kind == syncedKind {
		if b.dir, err = os.MkdirTemp("", "feedbox-bench-*"); err != nil {
			return "", err
		}
	}
	if b.kind == floorKind || b.kind == syncedKind {
		if b.floor, err = startFloor(receivedMessage(), b.dir); err != nil {
			return "", err
		}
		return b.floor.connectionString(), nil
	}
	b.emu, err = busemu.Start(&busemu.Options{
		AdminAddr: "-", DataDir: b.dir,
		Topology: &busemu.Topology{Queues: []busemu.Queue{queue}},
	})
	if err != nil {
		return "", err
	}
	return b.emu.ConnectionString(), nil
}

// stop stops everything and deletes the data.
func (b *broker) stop() error {
	var errs []error
	if b.client != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		errs = append(errs, b.client.Close(ctx))
	}
	if b.emu != nil {
		errs = append(errs, b.emu.Close())
	}
	if b.floor != nil {
		errs = append(errs, b.floor.close())
	}
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}

// sender returns a connected sender. If several goroutines use a new sender at the same time,
// azservicebus opens a link for each and closes only the last one (internal/amqpLinks.go,
// Get), so we connect it before the goroutines use it.
func (b *broker) sender(ctx context.Context) (*azservicebus.Sender, error) {
	sender, err := b.client.NewSender(queueName, nil)
	if err != nil {
		return nil, err
	}
	_, err = sender.NewMessageBatch(ctx, nil)
	return sender, err
}

// turn starts a broker, lets work measure on it, and stops it.
func turn(k kind, queue busemu.Queue, work func(ctx context.Context, b *broker) (measure.Sample, error)) measure.Turn {
	return func(ctx context.Context) (measure.Sample, error) {
		b, err := startBroker(k, queue)
		if err != nil {
			return measure.Sample{}, err
		}
		sample, err := work(ctx, b)
		if err := errors.Join(err, b.stop()); err != nil {
			return measure.Sample{}, fmt.Errorf("%s: %w", k, err)
		}
		return sample, nil
	}
}

// receivedMessage returns the encoded form of a delivered message.
func receivedMessage() []byte {
	var p amqp.Properties
	p.SetText(amqp.MessageID, "0123456789abcdef0123456789abcdef")
	w := amqp.BeginMapSection((&amqp.Header{}).Append(nil), amqp.CodeMessageAnnotations)
	w.Timestamp("x-opt-enqueued-time", amqp.TimestampOf(time.Now()))
	w.Long("x-opt-sequence-number", 1<<40)
	w.Timestamp("x-opt-locked-until", amqp.TimestampOf(time.Now()))
	return amqp.AppendData(p.Append(w.Finish()), make([]byte, bodySize))
}
