package sqs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/internal/handling"
)

// reception is what one Run of a consumer holds.
type reception struct {
	*Consumer
	settled chan settled // to be deleted; room for all that is held

	mu    sync.Mutex // guards what follows
	less  sync.Cond  // signals that count went down
	count int        // messages held, and those that requests may bring
	held  map[*held]bool
}

// held is a message that the service keeps from others.
type held struct {
	message *types.Message
	life    context.Context //nolint:containedctx // that of the delivery
	lose    context.CancelCauseFunc
	until   time.Time // when others may get it, unless it is extended
}

// settled is a message to be deleted, and its outcome if that succeeds.
type settled struct {
	*held
	out consumer.Outcome
}

// requestTimeout bounds a request that the service answers at once.
const requestTimeout = 10 * time.Second

// reserve waits for room for what a request may bring. It reports false when ctx has ended.
func (r *reception) reserve(ctx context.Context) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for ctx.Err() == nil && r.count+perRequest > r.opts.Held {
		r.less.Wait()
	}
	if ctx.Err() != nil {
		return false
	}
	r.count += perRequest
	return true
}

func (r *reception) release(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count -= n
	r.less.Broadcast()
}

// hold makes a delivery of a message that was received.
func (r *reception) hold(working context.Context, m *types.Message) *handling.Delivery {
	h := &held{message: m, until: time.Now().Add(r.opts.Visibility)}
	h.life, h.lose = context.WithCancelCause(working)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held[h] = true
	return &handling.Delivery{
		Event: event(m), Life: h.life,
		Complete: func(out consumer.Outcome) { r.settled <- settled{h, out} },
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
		r.count--
		r.less.Broadcast()
	}
}

// keep extends the visibility of what is held for longer than half of it, until ctx ends.
func (r *reception) keep(ctx context.Context) {
	ticker := time.NewTicker(r.opts.Visibility / 4)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			r.mu.Lock()
			var due []*held
			for h := range r.held {
				if h.until.Sub(now) <= r.opts.Visibility/2 {
					due = append(due, h)
				}
			}
			r.mu.Unlock()
			for len(due) > 0 {
				n := min(perRequest, len(due))
				r.extend(ctx, due[:n])
				due = due[n:]
			}
		}
	}
}

func (r *reception) extend(ctx context.Context, some []*held) {
	until := time.Now().Add(r.opts.Visibility)
	failed := r.change(ctx, some, r.opts.Visibility)
	for i, h := range some {
		var refusal *refused
		switch {
		case failed[i] == nil:
			h.until = until // read by keep alone
		case errors.As(failed[i], &refusal) || !time.Now().Before(h.until):
			r.drop(h, fmt.Errorf("%w: %w", consumer.ErrLockLost, failed[i]))
		default:
			r.work.Log.WarnContext(ctx, "a visibility was not extended", "queue", r.queue, "error", failed[i])
		}
	}
}

// giveBack lets others have what was not handled.
func (r *reception) giveBack(ctx context.Context) {
	var some []*held
	for h := range r.held {
		some = append(some, h)
		h.lose(nil)
	}
	for len(some) > 0 {
		n := min(perRequest, len(some))
		for _, err := range r.change(ctx, some[:n], 0) {
			if err != nil {
				r.work.Log.WarnContext(ctx, "an event was not given back; others get it when its visibility ends", "queue", r.queue, "error", err)
			}
		}
		some = some[n:]
	}
}

// change sets the visibility of some messages, at most perRequest.
func (r *reception) change(ctx context.Context, some []*held, visibility time.Duration) (failed []error) {
	entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(some))
	for i, h := range some {
		entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{Id: number(i), ReceiptHandle: h.message.ReceiptHandle, VisibilityTimeout: seconds(visibility)}
	}
	return r.ask(ctx, len(some), func(ctx context.Context) ([]types.BatchResultErrorEntry, error) {
		answer, err := r.client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &r.queue, Entries: entries})
		if err != nil {
			return nil, err
		}
		return answer.Failed, nil
	})
}

// refused is the service's word that a message is not this consumer's any more.
type refused struct{ error }

// ask makes a request for n messages, also when ctx has ended, and returns what went wrong for
// each.
func (r *reception) ask(ctx context.Context, n int, request func(ctx context.Context) ([]types.BatchResultErrorEntry, error)) []error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	answer, err := request(ctx)
	failed := make([]error, n)
	for i := range failed {
		failed[i] = err
	}
	for _, f := range answer {
		if i, wrong := strconv.Atoi(deref(f.Id)); wrong == nil && i >= 0 && i < n {
			failed[i] = fmt.Errorf("%s: %s", deref(f.Code), deref(f.Message))
			if f.SenderFault {
				failed[i] = &refused{failed[i]}
			}
		}
	}
	return failed
}

func number(i int) *string { return aws.String(strconv.Itoa(i)) }

func seconds(d time.Duration) int32 { return int32(d / time.Second) }

// event reads the event out of a message.
func event(m *types.Message) *consumer.Event {
	text := func(name string) string { return deref(m.MessageAttributes[name].StringValue) }
	whole := func(text string) int64 {
		n, _ := strconv.ParseInt(text, 10, 64) // 0: not told
		return n
	}
	e := &consumer.Event{
		ID: text(attributeID), Key: text(AttributeKey), Action: text(attributeType), Body: []byte(deref(m.Body)),
		Sequence: whole(text(AttributeSequence)), AggregateVersion: whole(text(AttributeAggregateVersion)), Traceparent: text(AttributeTraceparent),
		DeliveryCount: max(1, int(whole(m.Attributes["ApproximateReceiveCount"]))), Properties: make(map[string]any, len(m.MessageAttributes)),
	}
	if e.ID == "" {
		e.ID = m.Attributes["MessageDeduplicationId"]
	}
	if e.Key == "" {
		e.Key = m.Attributes["MessageGroupId"]
	}
	if sent := whole(m.Attributes["SentTimestamp"]); sent != 0 {
		e.EnqueuedAt = time.UnixMilli(sent)
	}
	for name, value := range m.MessageAttributes {
		if value.StringValue != nil {
			e.Properties[name] = *value.StringValue
		} else {
			e.Properties[name] = value.BinaryValue
		}
	}
	return e
}
