package firestore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"feedbox/application/command"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/firestore"
	"feedbox/infrastructure/store/recordstore"
	"feedbox/infrastructure/store/recordstore/recordstoretest"
)

func subject(db *firestore.DB) recordstoretest.Subject {
	return recordstoretest.Subject{Store: firestore.Records{DB: db}}
}

func baskets(t *testing.T, db *firestore.DB, o *recordstore.Options) *command.Service[*recordstoretest.Basket] {
	t.Helper()
	return recordstoretest.Baskets(t, firestore.Records{DB: db}, o)
}

func TestStoredEvents(t *testing.T) {
	t.Parallel()
	recordstoretest.Events(t, subject(open(t)))
}

func TestUnitOfWork(t *testing.T) {
	t.Parallel()
	recordstoretest.UnitOfWork(t, subject(open(t)))
}

// A deleted aggregate whose id may be used again leaves only its version and sequence.
func TestDeletedAggregateIsContinued(t *testing.T) {
	t.Parallel()
	db := open(t)
	p, short := baskets(t, db, nil), baskets(t, db, &recordstore.Options{DeletedTTL: time.Nanosecond})
	made, err := p.Create(t.Context(), recordstoretest.Opening("one"))
	must(t, err)
	id := made.Aggregate.ID()
	for _, removed := range []bool{true, false} {
		_, err = short.Update(t.Context(), command.Target{ID: id}, (*recordstoretest.Basket).Drop)
		must(t, err)
		if removed {
			must(t, db.RemoveAggregate(t.Context(), id.String()))
		}
		if _, err := p.Update(t.Context(), command.Target{ID: id}, (*recordstoretest.Basket).Drop); !fault.Is(err, fault.NotFound) {
			t.Errorf("what has expired is there: %v", err)
		}
		made, err = p.Create(t.Context(), recordstoretest.Opening("one"))
		if err != nil || made.Replayed || made.Aggregate.Version()%2 == 0 {
			t.Fatalf("made again: %+v, %v", made, err)
		}
	}
	_, err = p.Update(t.Context(), command.Target{ID: id}, (*recordstoretest.Basket).Drop)
	must(t, err)
	if _, err := p.Create(t.Context(), recordstoretest.Opening("one")); !fault.Is(err, fault.Gone) {
		t.Errorf("while the deleted one is kept: %v", err)
	}
	subject(db).History(t, id, 6, 6)
}

func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	recordstoretest.ConcurrentWriters(t, subject(open(t)))
}

// cut is a network that loses some commits or their answers.
type cut struct{ answers, requests atomic.Int64 }

func (c *cut) intercept(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	lost := status.Error(codes.Unavailable, "the connection is gone")
	isCommit := strings.HasSuffix(method, "/Commit")
	if isCommit && c.requests.Load() > 0 && c.requests.Add(-1) >= 0 {
		return lost
	}
	err := call(ctx, method, req, reply, conn, opts...)
	if isCommit && c.answers.Load() > 0 && c.answers.Add(-1) >= 0 {
		return lost
	}
	return err
}

// If the answer to a commit is lost, its outcome is resolved, and the change is made once.
func TestLostAnswersOfACommitAreResolved(t *testing.T) {
	t.Parallel()
	network := &cut{}
	o := project(t)
	db := openAt(t, o)
	o.Client = []option.ClientOption{option.WithGRPCDialOption(grpc.WithChainUnaryInterceptor(network.intercept))}
	p := baskets(t, openAt(t, o), &recordstore.Options{Backoff: time.Millisecond, Attempts: 5})
	for name, lose := range map[string]*atomic.Int64{"answer": &network.answers, "request": &network.requests} {
		lose.Store(1)
		made, err := p.Create(t.Context(), recordstoretest.Opening(""))
		must(t, err)
		id := made.Aggregate.ID()
		for n := range 5 {
			lose.Store(1)
			updated, err := p.Update(t.Context(), command.Target{ID: id, Sender: command.Sender{IdempotencyKey: fmt.Sprint(name, n)}}, func(b *recordstoretest.Basket) error { return b.Add(fmt.Sprint(n)) }, "Add", n)
			if err != nil || updated.Replayed || updated.ETag != fmt.Sprintf(`"%d"`, n+2) {
				t.Fatalf("the %s to change %d was lost: %+v, %v", name, n, updated, err)
			}
		}
		subject(db).History(t, id, 6, 6)
	}
	// If no attempt gets an answer, the outcome is unknown.
	made, err := p.Create(t.Context(), recordstoretest.Opening(""))
	must(t, err)
	network.requests.Store(1000)
	_, err = p.Update(t.Context(), command.Target{ID: made.Aggregate.ID()}, func(b *recordstoretest.Basket) error { return b.Add("x") })
	network.requests.Store(0)
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != recordstore.CodeOutcomeUnknown {
		t.Errorf("no answer comes: %v", err)
	}
}

// A commit beyond the limits of Firestore is refused before it is sent, and nothing is stored.
func TestLimitsOfACommit(t *testing.T) {
	t.Parallel()
	db := open(t)
	p := baskets(t, db, nil)
	made, err := p.Create(t.Context(), recordstoretest.Opening(""))
	must(t, err)
	id := made.Aggregate.ID()
	many := func(n, size int) func(b *recordstoretest.Basket) error {
		return func(b *recordstoretest.Basket) (err error) {
			for range n {
				err = errors.Join(err, b.Add(strings.Repeat("x", size)))
			}
			return err
		}
	}
	for says, change := range map[string]func(b *recordstoretest.Basket) error{
		"503 writes, and Firestore allows 500":       many(501, 1),
		"bytes, and Firestore allows 1048576 (docum": many(1, 1<<20),
	} {
		_, err := p.Update(t.Context(), command.Target{ID: id}, change)
		if !fault.Is(err, fault.TooLarge) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; want %s", err, says)
		}
	}
	subject(db).History(t, id, 1, 1)
}
