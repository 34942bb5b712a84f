// Package store says how orders are kept: this is all the persistence there is.
package store

import (
	"errors"
	"feedbox/application/command"
	"feedbox/application/query"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/document"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"

	"example.com/orders/order"
)

// Type is the type of the documents of orders, and what people call them.
const Type = "order"

// ids keeps the ids of orders that come of idempotency keys apart from all others.
var ids = uuid.MustParse("2f6f0c57-5a0e-4f0e-9c64-0d6f0f1f7a52")

// Kind says how orders are stored.
var Kind = document.JSON[*order.Order, order.State]{
	Type: Type, State: (*order.Order).State, Restore: order.Restore,
	Events: []document.EventCodec{
		document.JSONEvent[order.Placed](),
		document.JSONEvent[order.LineAdded](),
		document.JSONEvent[order.Shipped](),
		document.JSONEvent[order.Cancelled](),
	},
}

// Orders are the ports to the orders of a container.
type Orders struct {
	command.Service[*order.Order]
	Reader interface {
		query.Reader[document.Stored[order.State]]
		query.Pager[document.Listed[order.State]]
	}
}

// Open returns the orders in container.
func Open(container *azcosmos.ContainerClient) (*Orders, error) {
	work, err := cosmos.NewUnitsOfWork(container, Kind.Kind(), nil, nil)
	reader, wrong := cosmos.NewJSONReader[order.State](container, Type)
	service := command.Service[*order.Order]{Work: work, IDs: uuid.New, Now: time.Now, Noun: Type, Namespace: ids}
	return &Orders{Service: service, Reader: reader}, errors.Join(err, wrong)
}
