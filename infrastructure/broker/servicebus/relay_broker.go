package servicebus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/internal/publish"
	"feedbox/infrastructure/relay/relayport"
)

// BrokerName identifies Service Bus in metrics of dependencies and in probes.
const BrokerName = "serviceBus"

// RelayBrokerOptions name the destination of events. Topic is required.
type RelayBrokerOptions struct {
	// Topic receives the events. It must have duplicate detection, and its subscriptions must have
	// sessions.
	Topic string
	// Topics contains the topics of events that are not sent to Topic, by action.
	Topics map[string]string
	// Shards receive the events of Topic instead of it, each those of some keys. Topic remains their common
	// name in the default of Source and in metrics. A change of the list needs the procedure in the
	// documentation of the package. Default: all events are sent to Topic.
	Shards []Shard
	// Source is the CloudEvents source. Default: "/" and the topic.
	Source string
	// PackKeys puts events of several keys into one batch, which is much faster. A topic with
	// partitions refuses such batches, and then gets one batch per key.
	PackKeys bool
}

// Shard is one of the topics that share the keys. See Shards in the documentation of the package.
type Shard struct {
	Name   string  // unique; in logs, metrics and the recorded list
	Topic  string  // with the settings of RelayBrokerOptions.Topic
	Client *Client // of its namespace; default that of the broker
}

// shardOf returns the index of a key's shard of n.
func shardOf(key string, n int) int { return publish.Slot(key) * n / publish.Slots }

// reportAs returns options whose reports name a shard, or the topic of an action: if one of several fails, the others
// must not hide that.
func reportAs(shard string, several bool, o *PublisherOptions) *PublisherOptions {
	if !several || o == nil || o.Sent == nil {
		return o
	}
	named, sent := *o, o.Sent
	named.Sent = func(ctx context.Context, r relay.BatchReport) {
		r.Shard = shard
		sent(ctx, r)
	}
	return &named
}

// NewRelayBroker returns the broker of a relay. It does no I/O.
func NewRelayBroker(client *Client, o *RelayBrokerOptions) (relayport.Broker, error) {
	if client == nil || o == nil || o.Topic == "" {
		return relayport.Broker{}, errors.New("servicebus: the client and Topic are required")
	}
	given := *o
	broker := relayport.Broker{Name: BrokerName, System: "servicebus", Destination: given.Topic}
	shards := []Shard{{Name: given.Topic, Topic: given.Topic}}
	if len(given.Shards) > 0 {
		shards, given.Source = given.Shards, cmp.Or(given.Source, "/"+given.Topic)
		seen := map[Shard]bool{}
		for _, s := range shards {
			name, topic := Shard{Name: s.Name}, Shard{Topic: s.Topic, Client: cmp.Or(s.Client, client)}
			if s.Name == "" || s.Topic == "" || seen[name] || seen[topic] || len(shards) > publish.Slots {
				return relayport.Broker{}, fmt.Errorf("servicebus: a shard needs a unique name and a unique topic, and there are at most %d", publish.Slots)
			}
			seen[name], seen[topic], broker.Shards = true, true, append(broker.Shards, s.Name)
		}
		broker.ShardOf = func(key string) int { return shardOf(key, len(shards)) }
	}
	broker.Open = func(log *slog.Logger, sent func(context.Context, relay.BatchReport)) (relayport.Publisher, error) {
		return newTopics(client, shards, given.Topics, &PublisherOptions{
			PackKeys: given.PackKeys, Source: given.Source, Logger: log, Sent: sent,
		})
	}
	return broker, nil
}
