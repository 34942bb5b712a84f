// Package feedbox has the names that a service on Cosmos DB and Service Bus needs, in one import.
// Aliases and constructors only: every name is documented where it is declared.
//
//	write    NewCosmosClient ─▶ NewOutbox, or NewAggregates with a Kind
//	relay    NewServiceBusClient ─▶ NewRelay ─▶ Relay.Run
//	consume  NewMux, OnPayload ─▶ NewConsumer (with an Inbox) ─▶ Consumer.Run
//
// Aggregates are written with domain/aggregate and domain/fault, which link no SDK. The REST API is
// package infrastructure/httpapi, and infrastructure/lab/feedboxtest runs everything in a test. A
// service on another store or broker imports the packages of that store and broker, because this
// one links the SDKs of Azure.
package feedbox

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/query"
	"feedbox/domain/aggregate"
	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/cosmosinbox"
	"feedbox/infrastructure/relay/relayservice"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/cosmos/cosmosrelay"
	"feedbox/infrastructure/store/document"
)

// The clients of a service.
type (
	CosmosConfig     = cosmos.ClientConfig
	ServiceBusConfig = servicebus.ClientConfig
	ServiceBusClient = servicebus.Client
)

// NewCosmosClient is cosmos.NewClient.
func NewCosmosClient(c CosmosConfig) (*azcosmos.Client, error) { return cosmos.NewClient(c) }

// NewServiceBusClient is servicebus.NewClient, for NewRelay.
func NewServiceBusClient(c ServiceBusConfig) (*ServiceBusClient, error) {
	return servicebus.NewClient(c)
}

// Writing documents with events, without aggregates.
type (
	Outbox        = cosmos.Outbox
	OutboxOptions = cosmos.OutboxOptions
	OutboxEvent   = cosmos.Event
)

// NewOutbox is cosmos.NewOutbox.
func NewOutbox(container *azcosmos.ContainerClient, o *OutboxOptions) (*Outbox, error) {
	return cosmos.NewOutbox(container, o)
}

// The storage format of aggregates, and the requests of their API.
type (
	Kind[A aggregate.Aggregate, S any] = document.JSON[A, S]
	EventCodec                         = document.EventCodec
	Creation[A aggregate.Aggregate]    = command.Creation[A]
	Target                             = command.Target
	Updated                            = command.Updated
	Read                               = query.Read
	Page[I any]                        = query.Page[I]
	Stored[S any]                      = document.Stored[S]
	Listed[S any]                      = document.Listed[S]
	Snapshot                           = aggregate.Snapshot
)

// Aggregates changes and reads the aggregates of a container. NewAggregates fills it.
type Aggregates[A aggregate.Aggregate, S any] struct {
	command.Service[A]
	Reader interface {
		query.Reader[Stored[S]]
		query.Pager[Listed[S]]
	}
}

// JSONEvent is document.JSONEvent.
func JSONEvent[P interface{ Action() string }]() EventCodec { return document.JSONEvent[P]() }

// NewAggregates returns the aggregates of a kind in a container. Ids derived from idempotency keys are
// in namespace, a UUID of the kind's own.
func NewAggregates[A aggregate.Aggregate, S any](container *azcosmos.ContainerClient, kind Kind[A, S], namespace uuid.UUID) (*Aggregates[A, S], error) {
	work, err := cosmos.NewUnitsOfWork(container, kind.Kind(), nil, nil)
	reader, wrong := cosmos.NewJSONReader[S](container, kind.Type)
	return &Aggregates[A, S]{
		Service: command.Service[A]{Work: work, IDs: uuid.New, Now: time.Now, Noun: kind.Type, Namespace: namespace}, Reader: reader,
	}, errors.Join(err, wrong)
}

// One returns one aggregate for a read of the API.
func (a *Aggregates[A, S]) One(ctx context.Context, in Read) (query.Found[Stored[S]], error) {
	return query.One(ctx, a.Reader, a.Noun, in)
}

// MapPage is query.MapPage.
func MapPage[A, B any](p Page[A], item func(A) B) Page[B] { return query.MapPage(p, item) }

// The relay from containers to topics.
type (
	Relay        = relayservice.Service
	RelayOptions = relayservice.Options
	Containers   = cosmosrelay.Options
	Topics       = servicebus.RelayBrokerOptions
)

// NewRelay returns the relay of the events in containers of client to topics of bus. The caller closes
// both clients after Run.
func NewRelay(client *azcosmos.Client, from *Containers, bus *ServiceBusClient, to *Topics, o *RelayOptions) (*Relay, error) {
	store, err := cosmosrelay.NewStore(client, from)
	broker, wrong := servicebus.NewRelayBroker(bus, to)
	if err := errors.Join(err, wrong); err != nil {
		return nil, err
	}
	return relayservice.New(store, broker, o)
}

// Consuming events in the order of their keys.
type (
	Event           = consumer.Event
	Handler         = consumer.Handler
	Mux             = consumer.Mux
	Inbox           = cosmosinbox.Inbox
	Consumer        = subscriber.SessionProcessor
	ConsumerOptions = subscriber.SessionOptions
)

// NewMux is consumer.NewMux.
func NewMux() *Mux { return consumer.NewMux() }

// OnPayload is consumer.OnPayload.
func OnPayload[P interface{ Action() string }](m *Mux, handle func(ctx context.Context, e *Event, payload P) error) {
	consumer.OnPayload(m, handle)
}

// NewInbox is cosmosinbox.New: its marks are stored in one transaction with the effects of events.
func NewInbox(container *azcosmos.ContainerClient, name string) (*Inbox, error) {
	return cosmosinbox.New(container, name, nil)
}

// NewConsumer returns a consumer of a session subscription of a topic.
func NewConsumer(namespace ServiceBusConfig, topic, subscription string, handler Handler, o *ConsumerOptions) (*Consumer, error) {
	return subscriber.NewSessionProcessor(namespace, subscriber.Subscription(topic, subscription), handler, o)
}
