package world

import "slices"

// Containers of orders, if they are separate from contacts.
const (
	Orders       = "orders"
	OrdersLeases = "orders-leases"
	OrdersParked = "orders-parked"
)

// outbox is a data container with the other containers of its relays, and the kind of the relays.
type outbox struct{ data, leases, parked, relays string }

// outboxesOf returns all outboxes of a world. The first is that of the contacts, the last that of
// the orders; they may be the same.
func outboxesOf(t Topology) []outbox {
	all := []outbox{{Data, Leases, Parked, "relay"}}
	if t.OrdersApart {
		all = append(all, outbox{Orders, OrdersLeases, OrdersParked, "shoprelay"})
	}
	return all
}

// environ returns the environment of processes that use the outbox.
func (o outbox) environ() []string {
	return []string{"FEEDBOX_COSMOS_CONTAINER=" + o.data, "FEEDBOX_COSMOS_LEASES=" + o.leases, "FEEDBOX_COSMOS_PARKED=" + o.parked}
}

// orders returns the outbox of the orders.
func (w *World) orders() outbox { return w.outboxes[len(w.outboxes)-1] }

// outboxWith returns the first outbox for which is returns true.
func (w *World) outboxWith(is func(o outbox) bool) (o outbox, ok bool) {
	i := slices.IndexFunc(w.outboxes, is)
	if i < 0 {
		return outbox{}, false
	}
	return w.outboxes[i], true
}
