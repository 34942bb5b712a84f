// Package store defines the storage of orders. It is all the persistence code of the service.
package store

import (
	"feedbox"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"

	"example.com/orders/order"
)

// Type is the type of the documents of orders, and their name in faults.
const Type = "order"

// IDs separates the order ids derived from idempotency keys from other derived ids.
var IDs = uuid.MustParse("2f6f0c57-5a0e-4f0e-9c64-0d6f0f1f7a52")

// Kind defines how orders are stored.
var Kind = feedbox.Kind[*order.Order, order.State]{
	Type: Type, State: (*order.Order).State, Restore: order.Restore,
	Events: []feedbox.EventCodec{
		feedbox.JSONEvent[order.Placed](),
		feedbox.JSONEvent[order.LineAdded](),
		feedbox.JSONEvent[order.Shipped](),
		feedbox.JSONEvent[order.Cancelled](),
	},
}

// Orders changes and reads orders.
type Orders = feedbox.Aggregates[*order.Order, order.State]

// Open returns the orders in container.
func Open(container *azcosmos.ContainerClient) (*Orders, error) {
	return feedbox.NewAggregates(container, Kind, IDs)
}
