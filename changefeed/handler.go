package changefeed

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Handler processes changes. It is called from several goroutines: for
// different ranges, and with Options.Lanes > 1 also within one range, but never
// at the same time for two changes of one key.
//
// ctx ends before the trust window of the lease does. A handler that sends
// anything must stop when it ends: another host may already be sending. nil says
// that all items are handled. *PoisonError says which are not; Outage(err) says
// that none can be now; any other error says that some could not be and lets the
// processor find out which.
type Handler interface {
	Handle(ctx context.Context, batch *Batch) error
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, batch *Batch) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, batch *Batch) error { return f(ctx, batch) }

// Batch is what a handler is given: the items of one page, or with lanes those
// of one page and lane, in feed order. The batch and everything in it is valid
// until the handler returns.
type Batch struct {
	// Lease is the lease's id, Token its lease token, Range its feed range.
	Lease string
	Token string
	Range FeedRange
	// Epoch rises by one with each change of ownership: pass it on as a fencing
	// token where the destination can use one.
	Epoch int64
	// Items in feed order.
	Items []Item
	// Attempt is 1 on the first delivery of these items by this host.
	Attempt int
	// RequestCharge of the page in request units, not of the batch.
	RequestCharge float64
	SessionToken  string
	// Continuation is the position behind the page, the checkpoint once all of
	// it is handled.
	Continuation string

	fence *fence
}

// FirstLSN is the LSN of the first item, 0 if there is none.
func (b *Batch) FirstLSN() int64 {
	if len(b.Items) == 0 {
		return 0
	}
	return b.Items[0].LSN
}

// LastLSN is the LSN of the last item, 0 if there is none.
func (b *Batch) LastLSN() int64 {
	if len(b.Items) == 0 {
		return 0
	}
	return b.Items[len(b.Items)-1].LSN
}

// TrustedUntil is when the lease's trust window closes as things stand, on the
// host's monotonic clock. Renewals move it; ctx ends when it is reached.
func (b *Batch) TrustedUntil() time.Time { return b.fence.trusted() }

// Checkpointer saves progress on behalf of a manual handler.
type Checkpointer interface {
	// Checkpoint stores the position behind this batch's page, which vouches for
	// every page before it too. It returns once stored, or ErrLeaseLost or
	// ErrFenced if the lease is no longer this host's.
	Checkpoint(ctx context.Context) error
}

// manualHandler marks a handler that checkpoints by itself.
type manualHandler struct {
	handle func(context.Context, *Batch, Checkpointer) error
}

func (h *manualHandler) Handle(context.Context, *Batch) error {
	panic("changefeed: a manual handler is called with its checkpointer")
}

// Manual returns a handler that decides itself when a position is saved:
// returning nil only asks for the next page. After a restart, a hand-off or a
// split everything behind the last checkpoint is delivered again. New refuses it
// together with Options.Lanes > 1.
func Manual(handle func(ctx context.Context, batch *Batch, checkpointer Checkpointer) error) Handler {
	return &manualHandler{handle: handle}
}

// Typed returns a handler whose items are decoded from JSON first. A document
// that cannot be decoded is named in a PoisonError, and documents of the same
// key behind it wait with it; the others are handled.
func Typed[T any](handle func(ctx context.Context, batch *Batch, items []T) error) Handler {
	return HandlerFunc(func(ctx context.Context, batch *Batch) error {
		var poison []Poison
		var held map[string]bool
		whole := batch.Items
		good := make([]Item, 0, len(whole))
		at := make([]int, 0, len(whole)) // index in whole of each good item
		items := make([]T, 0, len(whole))
		for i := range whole {
			if held[string(whole[i].Key)] {
				continue
			}
			var item T
			if err := json.Unmarshal(whole[i].Raw, &item); err != nil {
				if held == nil {
					held = map[string]bool{}
				}
				held[string(whole[i].Key)] = true
				poison = append(poison, Poison{Index: i, Err: fmt.Errorf("decode %T: %w", item, err)})
				continue
			}
			good, at, items = append(good, whole[i]), append(at, i), append(items, item)
		}
		if len(good) > 0 {
			part := *batch
			part.Items = good
			if err := handle(ctx, &part, items); err != nil {
				return reindex(err, at, poison)
			}
		}
		if len(poison) > 0 {
			return &PoisonError{Documents: poison}
		}
		return nil
	})
}

// reindex translates a PoisonError about a part of a batch to the whole batch
// and adds what was found before. Other errors stay as they are.
func reindex(err error, at []int, more []Poison) error {
	poison, ok := asPoison(err)
	if !ok {
		return err
	}
	all := &PoisonError{Documents: more}
	for _, d := range poison.Documents {
		if d.Index >= 0 && d.Index < len(at) {
			all.Documents = append(all.Documents, Poison{Index: at[d.Index], Err: d.Err})
		}
	}
	return all
}
