package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/domain/aggregate"
	"feedbox/infrastructure/document"
	"feedbox/infrastructure/postgres"
	"feedbox/infrastructure/rows"
)

// basket is an aggregate of any kind.
type basket struct {
	aggregate.Root
	lines []string
}

type (
	basketState  struct{ Lines []string }
	basketOpened struct{}
	lineAdded    struct {
		Line string `json:"line"`
	}
	basketDropped struct{}
)

func (basketOpened) Action() string  { return "BasketOpenedEvent" }
func (lineAdded) Action() string     { return "LineAddedEvent" }
func (basketDropped) Action() string { return "BasketDroppedEvent" }

func (b *basket) add(line string) error {
	b.lines = append(b.lines, line)
	aggregate.Record(&b.Root, lineAdded{line}, uuid.New(), time.Now())
	return nil
}

func (b *basket) drop() error {
	if !b.Deleted() {
		b.MarkDeleted()
		aggregate.Record(&b.Root, basketDropped{}, uuid.New(), time.Now())
	}
	return nil
}

var basketKind = document.JSON[*basket, basketState]{
	Type:    "basket",
	State:   func(b *basket) basketState { return basketState{b.lines} },
	Restore: func(root aggregate.Root, s basketState) (*basket, error) { return &basket{root, s.Lines}, nil },
	Events:  []document.EventCodec{document.JSONEvent[basketOpened](), document.JSONEvent[lineAdded](), document.JSONEvent[basketDropped]()},
}

// baskets are the commands on the baskets of db.
func baskets(t testing.TB, db *postgres.DB, o *rows.Options) *command.Ports[*basket] {
	t.Helper()
	work, err := rows.NewUnitsOfWork(postgres.Rows{DB: db}, basketKind.Kind(), nil, o)
	must(t, err)
	return &command.Ports[*basket]{Work: work, IDs: uuid.New, Now: time.Now, Audit: true, Noun: "basket", Namespace: uuid.MustParse("0a7f19f2-3d8c-4d0b-b8e3-5a4b7f1f6a11")}
}

func opening(key string) command.Creation[*basket] {
	return command.Creation[*basket]{
		Sender: command.Sender{Principal: "alice", IdempotencyKey: key}, Parts: []any{"OpenBasket"},
		Make: func(id uuid.UUID, requestHash string) (*basket, error) {
			root, err := aggregate.New(id, requestHash)
			b := &basket{Root: root}
			aggregate.Record(&b.Root, basketOpened{}, uuid.New(), time.Now())
			return b, err
		},
	}
}
