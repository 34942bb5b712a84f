// Package store defines the storage of orders. It is all the persistence code of the service.
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

// Type is the type of the documents of orders, and their name in faults.
const Type = "order"

// ids separates the order ids derived from idempotency keys from other derived ids.
var ids = uuid.MustParse("2f6f0c57-5a0e-4f0e-9c64-0d6f0f1f7a52")

// Kind defines how orders are stored.
var Kind = document.JSON[*order.Order, order.State]{
	Type: Type, State: (*order.Order).State, Restore: order.Restore,
	Events: []document.EventCodec{
		document.JSONEvent[order.Placed](),
		document.JSONEvent[order.LineAdded](),
		document.JSONEvent[order.Shipped](),
		document.JSONEvent[order.Cancelled](),
	},
}

// Orders changes and reads the orders of a container.
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
