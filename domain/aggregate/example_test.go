package aggregate_test

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"feedbox/domain/aggregate"
)

// order is an aggregate with two kinds of events.
type order struct {
	aggregate.Root
	lines []string
}

type (
	orderPlaced struct{}
	lineAdded   struct{ Line string }
	addressSet  struct{ Address string }
)

func (orderPlaced) Action() string { return "OrderPlacedEvent" }
func (lineAdded) Action() string   { return "LineAddedEvent" }
func (addressSet) Action() string  { return "AddressSetEvent" }

// placeOrder returns a new order. requestHash is empty for a request without an idempotency
// key.
func placeOrder(id uuid.UUID, requestHash string, now time.Time) (*order, error) {
	root, err := aggregate.New(id, requestHash)
	if err != nil {
		return nil, err
	}
	o := &order{Root: root}
	aggregate.Record(&o.Root, orderPlaced{}, uuid.New(), now)
	return o, nil
}

func (o *order) addLine(line string, now time.Time) {
	o.lines = append(o.lines, line)
	aggregate.Record(&o.Root, lineAdded{line}, uuid.New(), now)
}

// setAddress records only the last address of a commit.
func (o *order) setAddress(address string, now time.Time) {
	aggregate.RecordLast(&o.Root, addressSet{address}, uuid.New(), now)
}

func (o *order) cancel() { o.MarkDeleted() }

// printPending prints the events of the next commit.
func printPending(a aggregate.Aggregate) aggregate.Commit {
	commit, _ := a.Pending()
	for _, e := range commit.Events {
		meta := e.Metadata()
		fmt.Println(e.Action(), "version", meta.AggregateVersion, "sequence", meta.Sequence)
	}
	return commit
}

// An aggregate embeds Root. Its verbs record events, and a commit stores them with the next
// version and sequences.
func Example() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	o, err := placeOrder(uuid.New(), "", now)
	if err != nil {
		fmt.Println(err)
		return
	}
	o.Committed(printPending(o))

	o.addLine("pens", now)
	o.addLine("paper", now)
	failed := printPending(o) // not confirmed, as if the store had failed
	retried := printPending(o)
	o.Committed(retried)
	_, changed := o.Pending()
	fmt.Println("version", o.Version(), "same commit:", failed.Version == retried.Version, "still pending:", changed)
	// Output:
	// OrderPlacedEvent version 1 sequence 1
	// LineAddedEvent version 2 sequence 2
	// LineAddedEvent version 2 sequence 3
	// LineAddedEvent version 2 sequence 2
	// LineAddedEvent version 2 sequence 3
	// version 2 same commit: true still pending: false
}

// An order that is created again under a derived id continues the sequence of the deleted
// one, so that consumers do not discard its events as duplicates.
func ExampleTombstone() {
	now, id := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), uuid.New()
	first, _ := placeOrder(id, "hash of the request", now)
	first.addLine("pens", now)
	first.cancel()
	tombstone, needed := first.Tombstone(printPending(first))
	fmt.Println("tombstone needed:", needed)

	second, _ := placeOrder(id, "hash of the request", now)
	if err := second.Continue(tombstone); err != nil {
		fmt.Println(err)
		return
	}
	printPending(second)
	// Output:
	// OrderPlacedEvent version 1 sequence 1
	// LineAddedEvent version 1 sequence 2
	// tombstone needed: true
	// OrderPlacedEvent version 2 sequence 3
}

// RecordLast replaces a pending event of the same action; Record does not.
func ExampleRecordLast() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	o, _ := placeOrder(uuid.New(), "", now)
	o.setAddress("Bern", now)
	o.addLine("pens", now)
	o.addLine("paper", now)
	o.setAddress("Basel", now)
	printPending(o)
	// Output:
	// OrderPlacedEvent version 1 sequence 1
	// AddressSetEvent version 1 sequence 2
	// LineAddedEvent version 1 sequence 3
	// LineAddedEvent version 1 sequence 4
}
