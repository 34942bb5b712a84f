package world

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"feedbox/domain/aggregate"
	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/store/document"
)

// order is a second kind of aggregate. Its events do not replace each other: a change may record
// several of one action.
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

var orderKind = document.JSON[*order, orderState]{
	Type:    "order",
	State:   func(o *order) orderState { return orderState{o.lines} },
	Restore: func(root aggregate.Root, s orderState) (*order, error) { return &order{root, s.Lines}, nil },
	Events:  []document.EventCodec{document.JSONEvent[orderPlaced](), document.JSONEvent[lineAdded](), document.JSONEvent[orderDropped]()},
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

// ordersUnlike returns a violation for each stored order whose lines differ from its events.
func (w *World) ordersUnlike(events []verify.Event) (breaches []string) {
	added := map[string]int{}
	for i := range events {
		if events[i].Action == (lineAdded{}).Action() {
			added[events[i].Key]++
		}
	}
	for _, raw := range w.raw(w.orders().data) {
		var d struct {
			ID   string     `json:"id"`
			Type string     `json:"type"`
			Data orderState `json:"data"`
		}
		if json.Unmarshal(raw, &d) == nil && d.Type == orderKind.Type && d.Data.Lines != added[d.ID] {
			breaches = append(breaches, fmt.Sprintf("I1 order %s: %d lines, its events added %d", d.ID, d.Data.Lines, added[d.ID]))
		}
	}
	return breaches
}

func (o *order) drop() error {
	if o.Deleted() {
		return errDropped
	}
	o.MarkDeleted()
	aggregate.Record(&o.Root, orderDropped{}, uuid.New(), time.Now())
	return nil
}
