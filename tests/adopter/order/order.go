// Package order holds the Order aggregate: lines of goods for one customer, within a credit
// limit, until it is shipped or cancelled.
package order

import (
	"cmp"
	"feedbox/domain/aggregate"
	"feedbox/domain/fault"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// The rules of an order.
const (
	CreditLimit = 1_000_000 // of all lines together, in cents
	LinePieces  = 10        // of one line; more become several lines
	maxPieces   = 100       // of one addition
	maxText     = 100       // of the name of a customer or goods, in bytes
)

// Status is the status of an order.
type Status string

// The statuses of an order. The last two are final.
const (
	Open       Status = "open"
	Dispatched Status = "shipped"
	CalledOff  Status = "cancelled"
)

// Line is some pieces of one kind of goods.
type Line struct {
	SKU    string `json:"sku" doc:"the goods"`
	Pieces int64  `json:"pieces" doc:"how many, from 1 to 10"`
	Price  int64  `json:"price" doc:"of one piece, in cents"`
}

// Order is the aggregate root.
type Order struct {
	aggregate.Root
	state State
}

// State is the stored state of an order besides its root.
type State struct {
	Customer string `json:"customer"`
	Status   Status `json:"status"`
	Lines    []Line `json:"lines"`
}

// Place returns a new order. RequestHash comes from command.Creation.
func Place(id uuid.UUID, requestHash, customer string, now time.Time) (*Order, error) {
	root, err := aggregate.New(id, requestHash)
	if err := cmp.Or(CheckCustomer(customer), err); err != nil {
		return nil, err
	}
	o := &Order{Root: root, state: State{Customer: customer, Status: Open, Lines: []Line{}}}
	aggregate.Record(&o.Root, Placed{customer}, uuid.New(), now)
	return o, nil
}

// Restore returns the order that was stored.
func Restore(root aggregate.Root, s State) (*Order, error) { return &Order{Root: root, state: s}, nil }

// State returns the order as plain values. Its lines must not be changed.
func (o *Order) State() State { return o.state }

// Add adds pieces of some goods, as one line for each LinePieces of them.
func (o *Order) Add(sku string, pieces, price int64, now time.Time) error {
	if err := cmp.Or(o.mustBeOpen(), CheckLine(sku, pieces, price)); err != nil {
		return err
	}
	if total := o.state.Total() + pieces*price; total > CreditLimit {
		return fault.New(fault.Conflict, "credit_limit", fmt.Sprintf("the order would cost %d, the limit is %d", total, CreditLimit))
	}
	for ; pieces > 0; pieces -= LinePieces {
		line := Line{SKU: sku, Pieces: min(pieces, LinePieces), Price: price}
		o.state.Lines = append(slices.Clip(o.state.Lines), line)
		aggregate.Record(&o.Root, LineAdded{line}, uuid.New(), now)
	}
	return nil
}

// Ship marks the order as shipped. It must have lines.
func (o *Order) Ship(now time.Time) error {
	if err := o.mustBeOpen(); err != nil {
		return err
	}
	if len(o.state.Lines) == 0 {
		return fault.New(fault.Conflict, "empty_order", "an order without lines cannot be shipped")
	}
	o.state.Status = Dispatched
	aggregate.Record(&o.Root, Shipped{o.state.Total()}, uuid.New(), now)
	return nil
}

// Cancel cancels the order.
func (o *Order) Cancel(now time.Time) error {
	if err := o.mustBeOpen(); err != nil {
		return err
	}
	o.state.Status = CalledOff
	aggregate.Record(&o.Root, Cancelled{}, uuid.New(), now)
	return nil
}

// Total returns the price of all lines in cents.
func (s State) Total() (total int64) {
	for _, l := range s.Lines {
		total += l.Pieces * l.Price
	}
	return total
}

func (o *Order) mustBeOpen() error {
	if o.state.Status != Open {
		return fault.New(fault.Conflict, "order_closed", "the order is "+string(o.state.Status)+" and can no longer change")
	}
	return nil
}

// CheckCustomer returns the faults of the name of a customer.
func CheckCustomer(name string) error { return fault.Fields(checkText("/customer", name)...) }

// CheckLine returns the faults of an addition.
func CheckLine(sku string, pieces, price int64) error {
	faults := checkText("/sku", sku)
	if pieces < 1 || pieces > maxPieces {
		faults = append(faults, fault.Field{Pointer: "/pieces", Message: fmt.Sprintf("must be from 1 to %d", maxPieces)})
	}
	if price < 1 || price > CreditLimit {
		faults = append(faults, fault.Field{Pointer: "/price", Message: fmt.Sprintf("must be from 1 to %d cents", CreditLimit)})
	}
	return fault.Fields(faults...)
}

func checkText(pointer, text string) []fault.Field {
	if strings.TrimSpace(text) == "" || len(text) > maxText {
		return []fault.Field{{Pointer: pointer, Message: fmt.Sprintf("must have from 1 to %d bytes", maxText)}}
	}
	return nil
}
