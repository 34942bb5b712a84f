package cosmosinbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/consumer"
)

// Batch is a transactional batch of a handler's own, with the mark of its event as the first
// operation: what the handler writes for an event is stored once, whatever crashes when.
//
//	batch, err := inbox.Batch(ctx, event)
//	if err != nil {
//		return err
//	}
//	batch.UpsertItem(projection, nil)
//	return batch.Execute(ctx)
//
// Its documents are in the inbox's container, under the event's key. It serves one
// goroutine.
type Batch struct {
	azcosmos.TransactionalBatch
	inbox   *Inbox
	event   *consumer.Event
	mark    consumer.Mark
	handled bool // before: there is nothing to do
}

// Batch returns a batch with the mark of e in it.
func (b *Inbox) Batch(ctx context.Context, e *consumer.Event) (*Batch, error) {
	if e == nil || e.Key == "" || e.ID == "" {
		return nil, errors.New("cosmos inbox: an event with a key and an id is required")
	}
	s, ok := b.recall(e.Key)
	if !ok {
		var err error
		if s, err = b.read(ctx, e.Key); err != nil {
			return nil, fmt.Errorf("read the inbox of key %s: %w", e.Key, err)
		}
	}
	batch := &Batch{
		TransactionalBatch: b.container.NewTransactionalBatch(azcosmos.NewPartitionKeyString(e.Key)),
		inbox:              b, event: e,
		mark: consumer.Mark{Sequence: e.Sequence, AggregateVersion: e.AggregateVersion, EventID: e.ID},
	}
	if batch.handled = isHandled(s.mark, e); batch.handled {
		return batch, nil
	}
	body, err := b.encode(e.Key, batch.mark)
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

// isHandled reports whether the mark says that e was handled.
func isHandled(last consumer.Mark, e *consumer.Event) bool {
	verdict := consumer.Judge(last, e)
	return verdict == consumer.Duplicate || verdict == consumer.Stale
}

// Execute stores the batch. It returns nil, too, and stores nothing, where the event was
// handled before: by an execution whose answer was lost, or by another holder of the
// session. After any other error the event has to come again.
func (b *Batch) Execute(ctx context.Context) error {
	if b == nil || b.inbox == nil {
		return errors.New("cosmos inbox: the batch was not made by Inbox.Batch")
	}
	if b.handled {
		return nil
	}
	reply, err := b.inbox.container.ExecuteTransactionalBatch(ctx, b.TransactionalBatch, nil)
	if err != nil {
		b.inbox.forget(b.event.Key)
		return fmt.Errorf("store what event %s of key %s does: %w", b.event.ID, b.event.Key, err)
	}
	if reply.Success {
		b.inbox.remember(b.event.Key, stored{b.mark, reply.OperationResults[0].ETag})
		return nil
	}
	b.inbox.forget(b.event.Key)
	for i, result := range reply.OperationResults {
		if result.StatusCode == http.StatusFailedDependency {
			continue
		}
		if i > 0 {
			return fmt.Errorf("store what event %s of key %s does: operation %d was refused with status %d", b.event.ID, b.event.Key, i, result.StatusCode)
		}
		return b.lost(ctx, int(result.StatusCode))
	}
	return fmt.Errorf("store what event %s of key %s does: the store refused it", b.event.ID, b.event.Key)
}

// lost looks why the mark was refused.
func (b *Batch) lost(ctx context.Context, status int) error {
	s, err := b.inbox.readPrimary(ctx, b.event.Key)
	if err != nil {
		return fmt.Errorf("read the inbox of key %s: %w", b.event.Key, err)
	}
	if isHandled(s.mark, b.event) {
		return nil
	}
	return fmt.Errorf("event %s of key %s: its mark was refused with status %d, another holder of the session was here", b.event.ID, b.event.Key, status)
}

// readPrimary reads the mark as it is now: a batch is executed by the primary, also one that
// only reads.
func (b *Inbox) readPrimary(ctx context.Context, key string) (stored, error) {
	batch := b.container.NewTransactionalBatch(azcosmos.NewPartitionKeyString(key))
	batch.ReadItem(b.consumer, nil)
	reply, err := b.container.ExecuteTransactionalBatch(ctx, batch, nil)
	switch {
	case err != nil:
		return stored{}, err
	case len(reply.OperationResults) != 1 || reply.OperationResults[0].StatusCode == http.StatusNotFound:
		return stored{}, nil
	case !reply.Success:
		return stored{}, &azcore.ResponseError{StatusCode: int(reply.OperationResults[0].StatusCode)}
	}
	var d document
	if err := json.Unmarshal(reply.OperationResults[0].ResourceBody, &d); err != nil {
		return stored{}, err
	}
	s := stored{d.mark(), reply.OperationResults[0].ETag}
	b.remember(key, s)
	return s, nil
}
