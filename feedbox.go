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

type (
	// CosmosConfig is the address and credential of a Cosmos DB account.
	CosmosConfig = cosmos.ClientConfig
	// ServiceBusConfig is the address and credential of a Service Bus namespace.
	ServiceBusConfig = servicebus.ClientConfig
	// ServiceBusClient is a connection that publishers share.
	ServiceBusClient = servicebus.Client
)

// NewCosmosClient is cosmos.NewClient.
func NewCosmosClient(c CosmosConfig) (*azcosmos.Client, error) { return cosmos.NewClient(c) }

// NewServiceBusClient is servicebus.NewClient, for NewRelay.
func NewServiceBusClient(c ServiceBusConfig) (*ServiceBusClient, error) {
	return servicebus.NewClient(c)
}

type (
	// Outbox stores documents and events in one transaction, without aggregates.
	Outbox = cosmos.Outbox
	// OutboxOptions tune an Outbox.
	OutboxOptions = cosmos.OutboxOptions
	// OutboxEvent is an event that a batch of an Outbox emits.
	OutboxEvent = cosmos.Event
)

// NewOutbox is cosmos.NewOutbox.
func NewOutbox(container *azcosmos.ContainerClient, o *OutboxOptions) (*Outbox, error) {
	return cosmos.NewOutbox(container, o)
}

type (
	// Kind is the storage format of aggregates A with states S.
	Kind[A aggregate.Aggregate, S any] = document.JSON[A, S]
	// EventCodec encodes the events of one action; see JSONEvent.
	EventCodec = document.EventCodec
	// Creation is the request to create an aggregate.
	Creation[A aggregate.Aggregate] = command.Creation[A]
	// Target is the aggregate that a request changes, and its preconditions.
	Target = command.Target
	// Updated is the result of a change.
	Updated = command.Updated
	// Read is the request to read an aggregate.
	Read = query.Read
	// Page is a part of a listing.
	Page[I any] = query.Page[I]
	// Stored is an aggregate as it is read.
	Stored[S any] = document.Stored[S]
	// Listed is an aggregate in a listing.
	Listed[S any] = document.Listed[S]
	// Snapshot has the id, the version and the sequence of an aggregate.
	Snapshot = aggregate.Snapshot
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
		Service: command.Service[A]{Work: work, IDs: uuid.New, Now: time.Now, Noun: kind.Type, Namespace: namespace}, Reader: reader, //nolint:forbidigo // the clock of a service
	}, errors.Join(err, wrong)
}

// One returns one aggregate for a read of the API.
func (a *Aggregates[A, S]) One(ctx context.Context, in Read) (query.Found[Stored[S]], error) {
	return query.One(ctx, a.Reader, a.Noun, in)
}

// MapPage is query.MapPage.
func MapPage[A, B any](p Page[A], item func(A) B) Page[B] { return query.MapPage(p, item) }

type (
	// Relay sends events from Cosmos DB to Service Bus.
	Relay = relayservice.Service
	// RelayOptions tune a Relay.
	RelayOptions = relayservice.Options
	// Containers names the containers of a Relay.
	Containers = cosmosrelay.Options
	// Topics names the topics of a Relay.
	Topics = servicebus.RelayBrokerOptions
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

type (
	// Event is a received event.
	Event = consumer.Event
	// Handler handles one event.
	Handler = consumer.Handler
	// Mux passes each event to the handler of its action.
	Mux = consumer.Mux
	// Inbox records handled events in the container of their effects.
	Inbox = cosmosinbox.Inbox
	// Consumer receives the events of each key in order.
	Consumer = subscriber.SessionProcessor
	// ConsumerOptions tune a Consumer.
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
