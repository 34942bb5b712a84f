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

// run is the state of one Run of a consumer.
type run struct {
	*Consumer
	settled chan *message       // to be deleted; its capacity is MaxInFlight, so that sends never block
	room    *semaphore.Weighted // for messages in flight and those that running requests may return

	mu       sync.Mutex // guards inFlight and message.settled
	inFlight map[*message]bool
}

// message is a message in flight: SQS does not deliver it to other consumers.
type message struct {
	*types.Message
	owned   context.Context //nolint:containedctx // ends when SQS may redeliver the message
	lose    context.CancelCauseFunc
	expires time.Time        // end of its visibility timeout
	timer   *time.Timer      // loses the message at that time, also while a request is not answered
	settled bool             // handled and recorded; it only remains to be deleted
	out     consumer.Outcome // set when it is settled
}

// requestTimeout bounds all requests except sends and Declare. A receive request also has the time of
// its long polling.
const requestTimeout = 10 * time.Second

// track registers a received message and returns its delivery.
func (r *run) track(working context.Context, received *types.Message) *handling.Delivery {
	m := &message{Message: received, expires: time.Now().Add(r.opts.Visibility)}
	m.owned, m.lose = context.WithCancelCause(working)
	r.mu.Lock()
	defer r.mu.Unlock()
	m.timer = time.AfterFunc(r.opts.Visibility, func() { r.untrack(m, errNotExtended) })
	r.inFlight[m] = true
	e := event(received)
	return &handling.Delivery{
		Event: e, Context: m.owned, WakeUp: isWakeUp(e),
		Complete: func(out consumer.Outcome) {
			r.mu.Lock()
			m.settled, m.out = true, out
			r.mu.Unlock()
			r.settled <- m
		},
		DeadLetter: func(ctx context.Context, reason *consumer.DeadLetterError) error {
			return r.deadLetter(ctx, received, reason)
		},
	}
}

var errNotExtended = fmt.Errorf("%w: the visibility was not extended in time", consumer.ErrLockLost)

// untrack ends the context of a message and releases its room. It may be called more than once. A cause
// means that the message is lost. Then all unsettled messages of its group are lost with it: SQS does not
// redeliver it while they are in flight, and to handle them would make it stale. A settled message loses
// only itself, because a repeat of it is dropped.
func (r *run) untrack(m *message, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	const group = "MessageGroupId"
	if cause != nil && r.inFlight[m] && !m.settled {
		for other := range r.inFlight {
			if !other.settled && other.Attributes[group] == m.Attributes[group] {
				r.remove(other, cause)
			}
		}
	}
	r.remove(m, cause)
}

// remove is untrack of one message, with mu held.
func (r *run) remove(m *message, cause error) {
	m.lose(cause)
	m.timer.Stop()
	if r.inFlight[m] {
		delete(r.inFlight, m)
		r.room.Release(1)
	}
}

// expiring returns the messages whose visibility ends within d.
func (r *run) expiring(d time.Duration) (messages []*message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for m := range r.inFlight {
		if time.Until(m.expires) <= d {
			messages = append(messages, m)
		}
	}
	return messages
}

// extendExpiring extends visibilities after half of their time, until ctx ends.
func (r *run) extendExpiring(ctx context.Context) {
	for ctx.Err() == nil {
		for batch := range slices.Chunk(r.expiring(r.opts.Visibility/2), perRequest) {
			r.extend(ctx, batch)
		}
		handling.Wait(ctx, ctx, r.opts.Visibility/4)
	}
}

func (r *run) extend(ctx context.Context, batch []*message) {
	expires := time.Now().Add(r.opts.Visibility)
	for i, err := range r.changeVisibility(ctx, batch, r.opts.Visibility) {
		switch m := batch[i]; {
		case err == nil:
			m.expires = expires // not guarded: only this goroutine reads it
			r.keep(m)
		case errors.Is(err, consumer.ErrLockLost):
			r.untrack(m, err)
		case !time.Now().Before(m.expires):
			r.untrack(m, fmt.Errorf("%w: %w", consumer.ErrLockLost, err))
		default:
			r.dispatcher.Log().WarnContext(ctx, "visibility not extended", "queue", r.queue, "error", err)
		}
	}
}

// keep postpones the loss of a message until it expires, unless it is lost already.
func (r *run) keep(m *message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inFlight[m] {
		m.timer.Reset(time.Until(m.expires))
	}
}

// releaseAll makes all unsettled messages visible to other consumers.
func (r *run) releaseAll(ctx context.Context) {
	for batch := range slices.Chunk(r.expiring(r.opts.Visibility), perRequest) {
		for i, err := range r.changeVisibility(ctx, batch, 0) {
			r.untrack(batch[i], nil)
			if err != nil {
				r.dispatcher.Log().WarnContext(ctx, "event not released: it is redelivered when its visibility ends", "queue", r.queue, "error", err)
			}
		}
	}
}

// changeVisibility sets the visibility timeout of at most perRequest messages, and returns the error of
// each.
func (r *run) changeVisibility(ctx context.Context, batch []*message, visibility time.Duration) []error {
	entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(batch))
	for i, m := range batch {
		entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds(visibility)}
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	answer, err := r.client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &r.queue, Entries: entries})
	if err != nil {
		return slices.Repeat([]error{err}, len(batch))
	}
	return entryErrors(len(batch), answer.Failed)
}

// deleteSettled deletes settled messages in batches until the channel is closed. A batch contains the
// messages that are settled already, without a wait for more.
func (r *run) deleteSettled(ctx context.Context) {
	for first := range r.settled {
		batch := []*message{first}
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
		for i, err := range r.deleteBatch(ctx, batch) {
			m := batch[i]
			r.dispatcher.Settled(m.owned, m.out, err)
			r.untrack(m, nil)
		}
	}
}

// deleteBatch deletes at most perRequest messages, and returns the error of each.
func (r *run) deleteBatch(ctx context.Context, batch []*message) []error {
	entries := make([]types.DeleteMessageBatchRequestEntry, len(batch))
	for i, m := range batch {
		entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle}
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	answer, err := r.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &r.queue, Entries: entries})
	if err != nil {
		return slices.Repeat([]error{err}, len(batch))
	}
	return entryErrors(len(batch), answer.Failed)
}

// bounded returns a context for a request that must be sent even if ctx has ended.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
}

// entryErrors returns the errors of n messages from the response to a batch. A sender fault means that
// the receipt handle is no longer valid, so the message is lost.
func entryErrors(n int, failed []types.BatchResultErrorEntry) []error {
	errs := make([]error, n)
	for _, f := range failed {
		if i, ok := indexOf(f.Id, n); ok {
			errs[i] = entryError(f)
			if f.SenderFault {
				errs[i] = fmt.Errorf("%w: %w", consumer.ErrLockLost, errs[i])
			}
		}
	}
	return errs
}
