package relayport

import (
	"context"
	"errors"
	"log/slog"

	"feedbox/application/relay"
)

// Broker receives the events. All fields but Shards and ShardOf are required.
type Broker struct {
	// Name identifies the broker in metrics of dependencies and in probes, such as
	// "serviceBus".
	Name string
	// System and Destination are its attributes in metrics of messages, by the semantic
	// conventions of OpenTelemetry: for example "servicebus" and the name of the topic.
	System, Destination string
	// Shards are the names of the parts that each receive the events of some keys and fail
	// independently, such as topics of several namespaces. ShardOf returns the index of the shard of
	// a key. Default: the broker has no shards.
	Shards  []string
	ShardOf func(key string) int
	// Open returns a publisher, which calls sent after each batch. It does no I/O.
	Open func(log *slog.Logger, sent func(ctx context.Context, r relay.BatchReport)) (Publisher, error)
}

// Publisher is a publisher that owns links.
type Publisher interface {
	relay.Publisher
	// Close ends the links. The connection below them belongs to the caller.
	Close(ctx context.Context) error
}

// Check returns an error if a field is missing.
func (b *Broker) Check() error {
	if b.Name == "" || b.System == "" || b.Destination == "" || b.Open == nil {
		return errors.New("relay: the broker needs Name, System, Destination and Open")
	}
	return nil
}
