package cosmosinbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/internal/limit"
)

// Batch is a transactional batch for the writes of a handler. Its first operation writes the mark of
// the event, so the writes of an event are stored exactly once, even after a crash.
//
//	batch, err := inbox.Batch(ctx, event)
//	if err != nil {
//		return err
//	}
//	batch.UpsertItem(projection, nil)
//	return batch.Execute(ctx)
//
// Its documents are stored in the inbox's container, in the partition of the event's key. A Batch is
// not safe for concurrent use.
type Batch struct {
	azcosmos.TransactionalBatch
	inbox   *Inbox
	event   *consumer.Event
	mark    consumer.Mark
	handled bool // before this batch
}

// Batch returns a batch that contains the mark of e, or consumer.ErrParking.
func (b *Inbox) Batch(ctx context.Context, e *consumer.Event) (*Batch, error) {
	if e == nil || e.Key == "" || e.ID == "" {
		return nil, errors.New("cosmos inbox: an event with a key and an id is required")
	}
	batch := &Batch{
		TransactionalBatch: b.container.NewTransactionalBatch(azcosmos.NewPartitionKeyString(e.Key)),
		inbox:              b, event: e, mark: e.Mark(),
	}
	if e.Resubmission != "" { // its mark is another document of the partition, which exists if it was handled
		body, err := b.encode(b.consumer+":"+e.Resubmission, e.Key, batch.mark)
		batch.CreateItem(body, nil)
		return batch, err
	}
	s, ok := b.recall(e.Key)
	if !ok {
		reading, l := limit.Start(ctx, b.timeout)
		read, err := b.read(reading, e.Key)
		if err = l.End(err); err != nil {
			return nil, fmt.Errorf("read the inbox of key %s: %w", e.Key, err)
		}
		s = read
	}
	batch.mark = s.mark.Next(e)
	if batch.handled = isHandled(s.mark, e); batch.handled {
		return batch, nil
	}
	if err := s.mark.MayHandle(e); err != nil {
		b.forget(e.Key)
		return nil, err
	}
	e.Replaced = s.mark.Replaced(e)
	body, err := b.encode(b.consumer, e.Key, batch.mark)
	if err != nil {
		return nil, err
	}
	if s.etag == "" {
		batch.CreateItem(body, nil)
	} else {
		batch.ReplaceItem(b.consumer, body, &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &s.etag})
	}
	return batch, nil
}

// isHandled reports whether e was handled before, according to the mark of its key.
func isHandled(last consumer.Mark, e *consumer.Event) bool {
	verdict := consumer.Judge(last, e)
	return verdict == consumer.Duplicate || verdict == consumer.Stale
}

// Execute stores the batch. If the event was handled before, Execute stores nothing and returns nil:
// an earlier response was lost, or another owner of the session has handled the event. After an error
// the event must be redelivered.
func (b *Batch) Execute(ctx context.Context) error {
	if b == nil || b.inbox == nil {
		return errors.New("cosmos inbox: use Inbox.Batch to create a batch")
	}
	if b.handled {
		return nil
	}
	ctx, l := limit.Start(ctx, b.inbox.timeout)
	return l.End(b.execute(ctx))
}

func (b *Batch) execute(ctx context.Context) error {
	reply, err := b.inbox.container.ExecuteTransactionalBatch(ctx, b.TransactionalBatch, nil)
	if err != nil {
		b.inbox.forget(b.event.Key)
		return b.failed("%w", err)
	}
	if reply.Success {
		if b.event.Resubmission == "" {
			b.inbox.remember(b.event.Key, stored{b.mark, reply.OperationResults[0].ETag})
		}
		return nil
	}
	b.inbox.forget(b.event.Key)
	for i, result := range reply.OperationResults {
		if result.StatusCode == http.StatusFailedDependency {
			continue
		}
		if i > 0 {
			return b.failed("operation %d was refused with status %d", i, result.StatusCode)
		}
		if b.event.Resubmission != "" {
			if result.StatusCode == http.StatusConflict {
				return nil
			}
			return b.failed("mark refused with status %d", result.StatusCode)
		}
		return b.checkRefusedMark(ctx, int(result.StatusCode))
	}
	return b.failed("the store refused the batch")
}

func (b *Batch) failed(format string, args ...any) error {
	return fmt.Errorf("store the batch of event %s of key %s: %w", b.event.ID, b.event.Key, fmt.Errorf(format, args...))
}

// checkRefusedMark returns nil if the mark was refused because the event was handled before.
func (b *Batch) checkRefusedMark(ctx context.Context, status int) error {
	s, err := b.inbox.read(ctx, b.event.Key)
	if err != nil {
		return fmt.Errorf("read the inbox of key %s: %w", b.event.Key, err)
	}
	if isHandled(s.mark, b.event) {
		return nil
	}
	if err := s.mark.MayHandle(b.event); err != nil {
		return err
	}
	return b.failed("mark refused with status %d: another owner of the session has changed it", status)
}
