package unitofwork

import (
	"cmp"
	"context"
	"fmt"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/domain/aggregate"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/document"
)

// UnitsOfWork begins units of work on the aggregates of one kind. It is safe for concurrent
// use.
type UnitsOfWork[A aggregate.Aggregate] struct {
	kind      *document.Kind[A]
	publisher Publisher
	options   Options
	begin     Begin[A]
}

// Begin begins a transaction of a store. Its reads see at least the state that the session
// token covers; a malformed token is fault.Invalid.
type Begin[A aggregate.Aggregate] func(kind *document.Kind[A], o *Options, sessionToken string) (Transaction, error)

// New returns units of work on the aggregates of kind, whose events go through publisher; nil
// puts each into the outbox. The options must have their defaults.
func New[A aggregate.Aggregate](kind *document.Kind[A], publisher Publisher, o Options, begin Begin[A]) (*UnitsOfWork[A], error) {
	kind, err := kind.Checked()
	if err != nil {
		return nil, err
	}
	kind.DeletedTTL = cmp.Or(kind.DeletedTTL, o.DeletedTTL)
	return &UnitsOfWork[A]{kind: kind, publisher: publisher, options: o, begin: begin}, nil
}

// Begin implements command.UnitsOfWork.
func (u *UnitsOfWork[A]) Begin(sessionToken string) (command.UnitOfWork[A], error) {
	tx, err := u.begin(u.kind, &u.options, sessionToken)
	if err != nil {
		return nil, err
	}
	return &unitOfWork[A]{Transaction: tx, of: u}, nil
}

// unitOfWork implements command.UnitOfWork: notes and session by its Transaction.
type unitOfWork[A aggregate.Aggregate] struct {
	Transaction
	of      *UnitsOfWork[A]
	tracked []*tracked[A]
}

// tracked is an aggregate that was added or read.
type tracked[A aggregate.Aggregate] struct {
	aggregate A
	state     State
}

// Add implements command.UnitOfWork.
func (w *unitOfWork[A]) Add(ctx context.Context, a A) error {
	if w.find(a.ID()) != nil {
		return fmt.Errorf("add %s %s: the unit of work has it already", w.of.kind.Noun, a.ID())
	}
	if err := w.room(a.ID()); err != nil {
		return fmt.Errorf("add %w", err)
	}
	if a.HasDerivedID() {
		switch earlier, err := w.Earlier(ctx, a.ID()); {
		case err == nil:
			if err := a.Continue(earlier); err != nil {
				return err
			}
		case !fault.Is(err, fault.NotFound):
			return err
		}
	}
	w.tracked = append(w.tracked, &tracked[A]{aggregate: a})
	return nil
}

// Read implements command.UnitOfWork. It returns the same aggregate each time.
func (w *unitOfWork[A]) Read(ctx context.Context, id uuid.UUID, ifMatch []string) (none A, err error) {
	found := w.find(id)
	if found == nil {
		if err := w.room(id); err != nil {
			return none, fmt.Errorf("read %w", err)
		}
		state, err := w.Transaction.Read(ctx, id, ifMatch)
		switch {
		case fault.Is(err, fault.NotFound):
			return none, w.of.kind.NotFound(id)
		case err != nil:
			return none, err
		}
		a, err := w.of.kind.Restore(id, state.Data)
		if err != nil {
			return none, err
		}
		state.Data = nil // the aggregate may share its memory
		found = &tracked[A]{a, state}
		w.tracked = append(w.tracked, found)
	}
	if !found.aggregate.Deleted() && !Matches(ifMatch, found.state.ETag) {
		return none, w.of.kind.ChangedByAnother()
	}
	return found.aggregate, nil
}

// room returns an error if the store's transaction has no room for another aggregate.
func (w *unitOfWork[A]) room(id uuid.UUID) error {
	if w.Single() && len(w.tracked) > 0 {
		return fmt.Errorf("%s %s: the unit of work has another one, %s; begin one for each", w.of.kind.Noun, id, w.tracked[0].aggregate.ID())
	}
	return nil
}

func (w *unitOfWork[A]) find(id uuid.UUID) *tracked[A] {
	for _, t := range w.tracked {
		if t.aggregate.ID() == id {
			return t
		}
	}
	return nil
}

// Commit implements command.UnitOfWork.
func (w *unitOfWork[A]) Commit(ctx context.Context) (command.Receipt, error) {
	var changed []*tracked[A]
	var changes []*Change
	events := 0 // of the transaction
	for _, t := range w.tracked {
		commit, pending := t.aggregate.Pending()
		if !pending {
			continue
		}
		c, err := w.change(ctx, t, commit, events)
		if err != nil {
			return command.Receipt{}, fmt.Errorf("commit %s %s: %w", w.of.kind.Noun, t.aggregate.ID(), err)
		}
		changed, changes = append(changed, t), append(changes, c)
		events += len(c.Events)
	}
	if len(changes) == 0 {
		// No write checks the aggregates then, and they may have been read from an old state.
		for _, t := range w.tracked {
			changes = append(changes, &Change{ID: t.aggregate.ID(), Before: t.state, After: t.state, Unchanged: true})
		}
	}
	if err := w.Save(ctx, changes); err != nil {
		return command.Receipt{}, err
	}
	for i, t := range changed {
		t.aggregate.Committed(changes[i].Commit)
		t.state = changes[i].After
	}
	receipt := command.Receipt{SessionToken: w.SessionToken()}
	if len(w.tracked) == 1 { // of several aggregates, the receipt could not say to which the ETag belongs
		receipt.ETag = w.tracked[0].state.ETag
	}
	return receipt, nil
}

// change returns the change of an aggregate, whose events follow before others in the transaction.
// Its events are encoded again in each commit, also
// after one that failed, with the same result if ctx has the same trace context.
func (w *unitOfWork[A]) change(ctx context.Context, t *tracked[A], commit aggregate.Commit, before int) (*Change, error) {
	kind := w.of.kind
	events := outbox{encode: kind.EventData, options: &w.of.options, before: before}
	if err := events.publish(ctx, w.of.publisher, commit.Events); err != nil {
		return nil, err
	}
	data, err := kind.Data(t.aggregate, commit)
	if err != nil {
		return nil, err
	}
	c := &Change{
		ID: t.aggregate.ID(), Before: t.state, After: State{Version: commit.Version}, Commit: commit, Data: data, Deleted: t.aggregate.Deleted(),
		Recurs: t.aggregate.HasDerivedID(), DeletedTTL: kind.DeletedTTL, Events: events.events,
	}
	if tombstone, needed := t.aggregate.Tombstone(commit); needed {
		c.Tombstone = &tombstone
	}
	return c, nil
}
