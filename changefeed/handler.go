package changefeed

import (
	"context"
	"encoding/json"
	"fmt"
)

// Handler processes changes. It is called from several goroutines: for
// different ranges, and also within one range, but never at the same time for two
// changes of one key.
//
// ctx ends before the trust window of the lease does. A handler that sends
// anything must stop when it ends: another host may already be sending.
//
// A handler that returns nil and has answered for nothing has handled all items.
// Otherwise what it has not answered for (Batch.Answer) is not done: an error
// means that nothing else was. See doc.go for what becomes of items that wait or
// are refused.
type Handler interface {
	Handle(ctx context.Context, batch *Batch) error
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, batch *Batch) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, batch *Batch) error { return f(ctx, batch) }

// Each returns a handler that is given one item after the other. An error is that
// item's answer, as for Batch.Answer, and skips the items behind it with the same
// key; the others are handled.
func Each(handle func(ctx context.Context, item Item) error) Handler {
	return HandlerFunc(func(ctx context.Context, batch *Batch) error {
		held := map[string]bool{} // keys with an item that is not done
		for i := range batch.Items {
			if held[string(batch.Items[i].Key)] {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			err := handle(ctx, batch.Items[i])
			batch.Answer(i, err)
			if err != nil {
				held[string(batch.Items[i].Key)] = true
			}
		}
		return nil
	})
}

// Batch is what a handler is given: the items of one page and lane in feed order,
// or items that are tried again, those of each key in feed order. It holds all that is
// not done of a key's part in a transaction. The batch and everything in it is valid
// until the handler returns.
type Batch struct {
	LeaseRef        // pass Epoch on as a fencing token where the destination can use one
	Token    string // the lease token
	Items    []Item
	// Attempt is 1 on the first delivery of these items by this host.
	Attempt int
	// RequestCharge of the page in request units, not of the batch.
	RequestCharge float64
	SessionToken  string
	// Continuation is the position behind the page of the last item, the checkpoint
	// once all up to it is handled.
	Continuation string

	answers *answers
}

// Checkpoint stores the position behind a batch's page, which vouches for every page
// before it too. It returns once stored, or ErrLeaseLost or ErrFenced if the lease is
// no longer this host's.
type Checkpoint func(ctx context.Context) error

// manualHandler marks a handler that checkpoints by itself.
type manualHandler func(context.Context, *Batch, Checkpoint) error

func (manualHandler) Handle(context.Context, *Batch) error {
	panic("changefeed: a manual handler is called with its checkpoint")
}

// Manual returns a handler that decides itself when a position is saved:
// returning nil only asks for the next page. After a restart, a hand-off or a
// split everything behind the last checkpoint is delivered again. New refuses it
// together with Options.Lanes > 1.
func Manual(handle func(ctx context.Context, batch *Batch, checkpoint Checkpoint) error) Handler {
	return manualHandler(handle)
}

// Typed returns a handler whose items are decoded from JSON first. A document
// that cannot be decoded is refused, and documents of the same key behind it wait
// with it; the others are handled. Indices of batch.Answer are those of items.
func Typed[T any](handle func(ctx context.Context, batch *Batch, items []T) error) Handler {
	return HandlerFunc(func(ctx context.Context, batch *Batch) error {
		held := map[string]bool{} // keys with a document that cannot be decoded
		part := *batch
		part.Items, part.answers = make([]Item, 0, len(batch.Items)), &answers{}
		at := make([]int, 0, len(batch.Items)) // index in batch of each of part's
		items := make([]T, 0, len(batch.Items))
		for i := range batch.Items {
			if held[string(batch.Items[i].Key)] {
				continue
			}
			var item T
			if err := json.Unmarshal(batch.Items[i].Raw, &item); err != nil {
				held[string(batch.Items[i].Key)] = true
				batch.Answer(i, Refuse(fmt.Errorf("decode %T: %w", item, err)))
				continue
			}
			part.Items, at, items = append(part.Items, batch.Items[i]), append(at, i), append(items, item)
		}
		if len(items) == 0 {
			return nil
		}
		err := handle(ctx, &part, items)
		verdicts := part.verdicts(err)
		for n, i := range at {
			v := verdict{kind: done}
			if verdicts != nil {
				v = verdicts[n]
			}
			batch.answers.set(i, len(batch.Items), v)
		}
		return err
	})
}
