package world

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"feedbox/domain/aggregate"
	"feedbox/infrastructure/cosmos"
)

// order is an aggregate of another kind than contacts. Its events do not replace each
// other: a change may record several of one action.
type order struct {
	aggregate.Root
	lines int
}

type (
	orderState struct {
		Lines int `json:"lines"`
	}
	orderPlaced  struct{}
	lineAdded    struct{ Line int }
	orderDropped struct{}
)

func (orderPlaced) Action() string  { return "OrderPlacedEvent" }
func (lineAdded) Action() string    { return "OrderLineAddedEvent" }
func (orderDropped) Action() string { return "OrderDroppedEvent" }

var orderKind = cosmos.JSON[*order, orderState]{
	Type:    "order",
	State:   func(o *order) orderState { return orderState{o.lines} },
	Restore: func(root aggregate.Root, s orderState) (*order, error) { return &order{root, s.Lines}, nil },
	Events:  []cosmos.EventCodec{cosmos.JSONEvent[orderPlaced](), cosmos.JSONEvent[lineAdded](), cosmos.JSONEvent[orderDropped]()},
}

var errDropped = errors.New("the order is dropped")

func placeOrder(id uuid.UUID, requestHash string) (*order, error) {
	root, err := aggregate.New(id, requestHash)
	if err != nil {
		return nil, err
	}
	o := &order{Root: root}
	aggregate.Record(&o.Root, orderPlaced{}, uuid.New(), time.Now())
	return o, nil
}

func (o *order) add(lines int) error {
	if o.Deleted() {
		return errDropped
	}
	for range lines {
		o.lines++
		aggregate.Record(&o.Root, lineAdded{o.lines}, uuid.New(), time.Now())
	}
	return nil
}

func (o *order) drop() error {
	if o.Deleted() {
		return errDropped
	}
	o.MarkDeleted()
	aggregate.Record(&o.Root, orderDropped{}, uuid.New(), time.Now())
	return nil
}
