package changefeed

import (
	"context"
	"encoding/json"
	"fmt"
)

// Handler processes changes. It is called from several goroutines, for different ranges and
// also within one range, but never at the same time for two changes of one key.
//
// ctx ends before the trust window of the lease does. A handler must stop sending when ctx
// ends, because another host may already be sending.
//
// If a handler returns nil without any Batch.Answer, all items are done. Otherwise items
// without an answer are not done, and an error means that no other item is. doc.go
// describes the handling of waiting and refused items.
type Handler interface {
	Handle(ctx context.Context, batch *Batch) error
}

// HandlerFunc adapts a function to a Handler.
type HandlerFunc func(ctx context.Context, batch *Batch) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, batch *Batch) error { return f(ctx, batch) }

// Each returns a handler that calls handle with one item after the other. An error is that
// item's answer, as for Batch.Answer, and skips later items with the same key. Other keys
// continue.
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

// Batch is the argument of one handler call: the items of one page and lane in feed order,
// or retried items, those of each key in feed order. If a transaction changed a key several
// times, the batch contains all of those changes that are not done. The batch and
// everything in it are valid until the handler returns.
type Batch struct {
	LeaseRef        // pass Epoch on as a fencing token if the destination can use one
	Token    string // the lease token
	Items    []Item
	// Attempt is 1 on the first delivery of these items by this host.
	Attempt int
	// RequestCharge is the charge of the whole page in request units.
	RequestCharge float64
	SessionToken  string
	// Continuation is the position after the page of the last item. It becomes the
	// checkpoint once everything up to it is handled.
	Continuation string
	// Resumed means that the items were written after the start of the range: reading continued from
	// a checkpoint, or the range was read to its end before this page. It is false for what is read
	// from the beginning or from a time on.
	Resumed bool

	answers *answers
}

// Checkpoint stores the position after a batch's page, which covers every page before it.
// It returns once the position is stored, or ErrLeaseLost or ErrFenced if this host does
// not own the lease any longer.
type Checkpoint func(ctx context.Context) error

// manualHandler marks a handler that stores its checkpoints itself.
type manualHandler func(context.Context, *Batch, Checkpoint) error

func (manualHandler) Handle(context.Context, *Batch) error {
	panic("changefeed: a manual handler is called with its checkpoint")
}

// Manual returns a handler that decides itself when a position is stored: returning nil
// only asks for the next page. After a restart, a hand-off or a split, everything after the
// last checkpoint is redelivered. New refuses it together with Options.Lanes > 1, because a
// checkpoint would also cover the unfinished items of other lanes.
func Manual(handle func(ctx context.Context, batch *Batch, checkpoint Checkpoint) error) Handler {
	return manualHandler(handle)
}

// Typed returns a handler whose items are decoded from JSON first. A document that cannot
// be decoded is refused, and later documents of the same key wait with it. Other keys
// continue. Indices of batch.Answer are indices of items.
func Typed[T any](handle func(ctx context.Context, batch *Batch, items []T) error) Handler {
	return HandlerFunc(func(ctx context.Context, batch *Batch) error {
		held := map[string]bool{} // keys with a document that cannot be decoded
		part := *batch
		part.Items, part.answers = make([]Item, 0, len(batch.Items)), &answers{}
		at := make([]int, 0, len(batch.Items)) // index in batch of each item of part
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
