package world

import (
	"cmp"
	"slices"
	"time"
)

// Topology describes the parts of a world. Zero values mean the defaults.
type Topology struct {
	APIs, Relays, Consumers int // default 2 each; negative: none
	// Shops is the number of processes that change orders, a second kind of aggregate,
	// without the API. Default none.
	Shops int
	// OrdersApart keeps orders in their own container with their own relays. Default: in
	// that of contacts.
	OrdersApart bool
	// OneRelay, with OrdersApart, lets the relays of contacts read the container of orders, too. Default:
	// each has relays of its own.
	OneRelay bool
	// Partitions is the number of physical partitions of the data container. Default 2.
	Partitions int
	// Throughput is the request units per second of each container. Default: no limit.
	Throughput int
	// OnDisk gives the emulators disks that lose data that was not fsynced in a crash. Without
	// it the emulators cannot crash.
	OnDisk bool
	// StaleReads is the maximum staleness of reads without a session token.
	StaleReads time.Duration
	// EventTTL is the lifetime of events. Default 240 h. Below an hour the world records
	// expired events.
	EventTTL time.Duration
	// LeaseExpiry of the relays. Default 10 s.
	LeaseExpiry time.Duration
	// PollMin and PollMax of the relays. Defaults 500 ms and 5 s.
	PollMin, PollMax time.Duration
	// MaxItems of a page of the feed. Default 20.
	MaxItems int
	// PackKeys lets the relays pack several keys into one batch.
	PackKeys bool
	// DuplicateWindow of the topic. Default 20 min.
	DuplicateWindow time.Duration
	// Premium raises the broker's limit of a message and of a batch from 256 KB to 1 MB.
	Premium bool
	// Sessions is the number of sessions per consumer. Default 4.
	Sessions int
	// Parking gives the consumers an inbox and parked events in the store. Their handlers refuse, fail,
	// panic, wait, and need a dependency; see moods.go.
	Parking bool
	// Environ is added to the environment of APIs and relays, for example
	// "FEEDBOX_AUDIT=true".
	Environ []string
	// Manual starts only the emulators; the test calls Start for every process.
	Manual bool
}

func (t Topology) withDefaults() Topology {
	count := func(n int) int { return max(0, cmp.Or(n, 2)) }
	t.APIs, t.Relays, t.Consumers = count(t.APIs), count(t.Relays), count(t.Consumers)
	t.Partitions = cmp.Or(t.Partitions, 2)
	t.EventTTL = cmp.Or(t.EventTTL, 240*time.Hour)
	t.LeaseExpiry = cmp.Or(t.LeaseExpiry, 10*time.Second)
	t.PollMin = cmp.Or(t.PollMin, 500*time.Millisecond)
	t.PollMax = cmp.Or(t.PollMax, 5*time.Second)
	t.MaxItems = cmp.Or(t.MaxItems, 20)
	t.DuplicateWindow = cmp.Or(t.DuplicateWindow, 20*time.Minute)
	t.Sessions = cmp.Or(t.Sessions, 4)
	return t
}

// parks reports whether there are consumers that park events.
func (t Topology) parks() bool { return t.Parking && t.Consumers > 0 }

// expires reports whether events may expire within a run.
func (t Topology) expires() bool { return t.EventTTL < time.Hour }

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
		relays := "shoprelay"
		if t.OneRelay {
			relays = "relay"
		}
		all = append(all, outbox{Orders, OrdersLeases, OrdersParked, relays})
	}
	return all
}

// more is an entry of FEEDBOX_RELAY_CONTAINERS.
func (o outbox) more() string { return o.data + "/" + o.leases + "/" + o.parked }

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
