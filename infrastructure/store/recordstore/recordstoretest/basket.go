package recordstoretest

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/domain/aggregate"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/recordstore"
)

// Basket is an aggregate with lines, which is deleted by Drop.
type Basket struct {
	aggregate.Root
	lines []string
}

// BasketState is the stored state of a Basket.
type BasketState struct{ Lines []string }

type (
	basketOpened struct{}
	lineAdded    struct {
		Line string `json:"line"`
	}
	basketDropped struct{}
)

func (basketOpened) Action() string  { return "BasketOpenedEvent" }
func (lineAdded) Action() string     { return "LineAddedEvent" }
func (basketDropped) Action() string { return "BasketDroppedEvent" }

// Add adds a line. It returns no error, and has the signature of a change.
func (b *Basket) Add(line string) error {
	b.lines = append(b.lines, line)
	aggregate.Record(&b.Root, lineAdded{line}, uuid.New(), time.Now())
	return nil
}

// Drop deletes the basket. A second call does nothing.
func (b *Basket) Drop() error {
	if !b.Deleted() {
		b.MarkDeleted()
		aggregate.Record(&b.Root, basketDropped{}, uuid.New(), time.Now())
	}
	return nil
}

var basketKind = document.JSON[*Basket, BasketState]{
	Type:    "basket",
	State:   func(b *Basket) BasketState { return BasketState{b.lines} },
	Restore: func(root aggregate.Root, s BasketState) (*Basket, error) { return &Basket{root, s.Lines}, nil },
	Events:  []document.EventCodec{document.JSONEvent[basketOpened](), document.JSONEvent[lineAdded](), document.JSONEvent[basketDropped]()},
}

// Baskets returns the commands on the baskets in store.
func Baskets(t testing.TB, store recordstore.Store, o *recordstore.Options) *command.Service[*Basket] {
	t.Helper()
	work, err := recordstore.NewUnitsOfWork(store, basketKind.Kind(), nil, o)
	must(t, err)
	return &command.Service[*Basket]{Work: work, IDs: uuid.New, Now: time.Now, Audit: true, Noun: "basket", Namespace: uuid.MustParse("0a7f19f2-3d8c-4d0b-b8e3-5a4b7f1f6a11")}
}

// Reader returns a reader of the baskets in store.
func Reader(t testing.TB, store recordstore.Store) *recordstore.Reader[document.Stored[BasketState], document.Listed[BasketState]] {
	t.Helper()
	reader, err := recordstore.NewJSONReader[BasketState](store, basketKind.Type)
	must(t, err)
	return reader
}

// Opening creates a basket under an idempotency key; "" is none.
func Opening(key string) command.Creation[*Basket] {
	return command.Creation[*Basket]{
		Sender: command.Sender{Principal: "alice", IdempotencyKey: key}, Parts: []any{"OpenBasket"},
		Make: func(id uuid.UUID, requestHash string) (*Basket, error) {
			root, err := aggregate.New(id, requestHash)
			b := &Basket{Root: root}
			aggregate.Record(&b.Root, basketOpened{}, uuid.New(), time.Now())
			return b, err
		},
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
