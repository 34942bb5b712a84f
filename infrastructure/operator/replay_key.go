package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

// KeyReplay contains the stored events of one key, in order.
type KeyReplay struct {
	Resend
	Key      string
	Messages []relay.Message
	// Missing lists the sequence numbers between the first and the last event that are absent.
	Missing []int64
}

// PlanKeyReplay reads the stored events of key. It returns Conflict if the key is parked,
// because a replay would overtake the parked events.
func (o *Operator) PlanKeyReplay(ctx context.Context, key string, window time.Duration) (*KeyReplay, error) {
	if err := o.notParked(ctx, key); err != nil {
		return nil, err
	}
	events, err := o.store.Events.OfKey(ctx, key)
	if err != nil {
		return nil, err
	}
	plan := &KeyReplay{Key: key}
	for _, e := range events {
		plan.Messages = append(plan.Messages, e.Message)
		plan.add(e.StoredAt, time.Now(), window)
	}
	plan.Missing = missing(plan.Messages)
	return plan, nil
}

func (o *Operator) notParked(ctx context.Context, key string) error {
	gate, err := o.Parked.Gate(ctx, key)
	if err == nil {
		return fault.New(fault.Conflict, "parked", fmt.Sprintf("the key %s is parked with %d events waiting", key, gate.Events))
	}
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// missing returns the gaps in the sequence. Events without a sequence have none.
func missing(messages []relay.Message) []int64 {
	var holes []int64
	for i := 1; i < len(messages); i++ {
		if messages[i-1].Sequence == 0 {
			continue
		}
		for n := messages[i-1].Sequence + 1; n < messages[i].Sequence; n++ {
			holes = append(holes, n)
		}
	}
	return holes
}

// keyBatch is the number of events sent between two calls of progress.
const keyBatch = 200

// SendKey sends the events of a plan in order, with their original message ids. It calls
// progress with the number of events that the broker has accepted. It returns Conflict if a relay has
// parked the key since the plan was made, or does so meanwhile.
func (o *Operator) SendKey(ctx context.Context, plan *KeyReplay, progress func(events int)) (err error) {
	if o.broker == nil {
		return errNoBroker
	}
	if err := o.CheckShards(ctx); err != nil {
		return err
	}
	publisher, err := o.broker.Open(slog.New(slog.DiscardHandler), func(context.Context, relay.BatchReport) {})
	if err != nil {
		return err
	}
	defer func() { // also after a failure or the end of ctx, because a page that replays runs on
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		err = errors.Join(err, publisher.Close(ctx))
	}()
	for some := range slices.Chunk(plan.Messages, keyBatch) {
		if err := o.notParked(ctx, plan.Key); err != nil {
			return err
		}
		if err := publisher.Publish(ctx, []relay.Group{{Key: plan.Key, Messages: some}}); err != nil {
			return fmt.Errorf("send the events of key %s: %w", plan.Key, err)
		}
		progress(len(some))
	}
	return nil
}
