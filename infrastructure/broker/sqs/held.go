package sqs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/semaphore"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
)

// reception is what one Run of a consumer holds.
type reception struct {
	*Consumer
	settled chan *held          // to be deleted; room for all that is held
	room    *semaphore.Weighted // for messages held, and those that requests may bring

	mu   sync.Mutex // guards held
	held map[*held]bool
}

// held is a message that the service keeps from others.
type held struct {
	message *types.Message
	life    context.Context //nolint:containedctx // that of the delivery
	lose    context.CancelCauseFunc
	until   time.Time        // when others may get it, unless it is extended
	out     consumer.Outcome // once it is settled
}

// requestTimeout bounds a request that the service answers at once.
const requestTimeout = 10 * time.Second

// hold makes a delivery of a message that was received.
func (r *reception) hold(working context.Context, m *types.Message) *handling.Delivery {
	h := &held{message: m, until: time.Now().Add(r.opts.Visibility)}
	h.life, h.lose = context.WithCancelCause(working)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held[h] = true
	return &handling.Delivery{
		Event: event(m), Context: h.life,
		Complete: func(out consumer.Outcome) {
			h.out = out
			r.settled <- h
		},
		DeadLetter: func(ctx context.Context, letter *consumer.DeadLetterError) error {
			return r.deadLetter(ctx, m, letter)
		},
	}
}

// drop ends the life of a message, once.
func (r *reception) drop(h *held, cause error) {
	h.lose(cause)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held[h] {
		delete(r.held, h)
		r.room.Release(1)
	}
}

// due returns what others may get within d.
func (r *reception) due(d time.Duration) (some []*held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for h := range r.held {
		if time.Until(h.until) <= d {
			some = append(some, h)
		}
	}
	return some
}

// keep extends the visibility of what is held for longer than half of it, until ctx ends.
func (r *reception) keep(ctx context.Context) {
	for ctx.Err() == nil {
		for some := range slices.Chunk(r.due(r.opts.Visibility/2), perRequest) {
			r.extend(ctx, some)
		}
		handling.Wait(ctx, ctx, r.opts.Visibility/4)
	}
}

func (r *reception) extend(ctx context.Context, some []*held) {
	until := time.Now().Add(r.opts.Visibility)
	for i, err := range r.change(ctx, some, r.opts.Visibility) {
		switch h := some[i]; {
		case err == nil:
			h.until = until // read by keep alone
		case errors.Is(err, consumer.ErrLockLost):
			r.drop(h, err)
		case !time.Now().Before(h.until):
			r.drop(h, fmt.Errorf("%w: %w", consumer.ErrLockLost, err))
		default:
			r.dispatcher.Log().WarnContext(ctx, "a visibility was not extended", "queue", r.queue, "error", err)
		}
	}
}

// giveBack lets others have what was not handled.
func (r *reception) giveBack(ctx context.Context) {
	for some := range slices.Chunk(r.due(r.opts.Visibility), perRequest) {
		for i, err := range r.change(ctx, some, 0) {
			some[i].lose(nil)
			if err != nil {
				r.dispatcher.Log().WarnContext(ctx, "an event was not given back; others get it when its visibility ends", "queue", r.queue, "error", err)
			}
		}
	}
}

// change sets the visibility of some messages, at most perRequest, and returns what went wrong
// for each.
func (r *reception) change(ctx context.Context, some []*held, visibility time.Duration) []error {
	entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(some))
	for i, h := range some {
		entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: h.message.ReceiptHandle, VisibilityTimeout: seconds(visibility)}
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	answer, err := r.client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &r.queue, Entries: entries})
	if err != nil {
		return slices.Repeat([]error{err}, len(some))
	}
	return refusals(len(some), answer.Failed)
}

// delete deletes what is settled, as many at a time as there are, until there will be no more.
func (r *reception) delete(ctx context.Context) {
	for first := range r.settled {
		batch := []*held{first}
		for more := true; more && len(batch) < perRequest; {
			select {
			case next, ok := <-r.settled:
				if more = ok; ok {
					batch = append(batch, next)
				}
			default:
				more = false
			}
		}
		for i, err := range r.remove(ctx, batch) {
			h := batch[i]
			r.dispatcher.Settled(h.life, h.out, err)
			r.drop(h, nil)
		}
	}
}

// remove deletes some messages, at most perRequest, and returns what went wrong for each.
func (r *reception) remove(ctx context.Context, some []*held) []error {
	entries := make([]types.DeleteMessageBatchRequestEntry, len(some))
	for i, h := range some {
		entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: h.message.ReceiptHandle}
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	answer, err := r.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &r.queue, Entries: entries})
	if err != nil {
		return slices.Repeat([]error{err}, len(some))
	}
	return refusals(len(some), answer.Failed)
}

// bounded is a context for a request that is made also when ctx has ended.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
}

// refusals returns what an answer says of each of n messages. Where the fault is this
// consumer's, the message is not its own any more.
func refusals(n int, answer []types.BatchResultErrorEntry) []error {
	failed := make([]error, n)
	for _, f := range answer {
		if i, ok := place(f.Id, n); ok {
			failed[i] = told(f)
			if f.SenderFault {
				failed[i] = fmt.Errorf("%w: %w", consumer.ErrLockLost, failed[i])
			}
		}
	}
	return failed
}
