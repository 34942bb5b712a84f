package cosmos

import (
	"context"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/store/cosmos/internal/store"
)

// read reads a document from any replica that has caught up with the session.
func (c *ContainerContext) read(ctx context.Context, partitionKey, id string) (DataObject, error) {
	reply, err := c.container.ReadItem(ctx, keyValue(partitionKey), id, &azcosmos.ItemOptions{SessionToken: c.session.Option()})
	if err != nil {
		c.session.Merge(store.SessionOf(err))
		return DataObject{}, store.AsFault("read document "+id, err)
	}
	if reply.SessionToken != nil {
		c.session.Merge(*reply.SessionToken)
	}
	return decodeObject(reply.Value)
}

// readPrimary reads the current document. It uses a transactional batch, because a lagging
// replica may answer a plain read, but the primary executes every batch, even one that only
// reads.
func (c *ContainerContext) readPrimary(ctx context.Context, partitionKey, id string) (DataObject, error) {
	result, err := c.readPrimaryRaw(ctx, partitionKey, id)
	if err != nil {
		return DataObject{}, err
	}
	return decodeObject(result.ResourceBody)
}

func (c *ContainerContext) readPrimaryRaw(ctx context.Context, partitionKey, id string) (none azcosmos.TransactionalBatchResult, err error) {
	what := "read document " + id
	batch := c.container.NewTransactionalBatch(keyValue(partitionKey))
	batch.ReadItem(id, nil)
	reply, err := c.container.ExecuteTransactionalBatch(ctx, batch, nil)
	if err != nil {
		c.session.Merge(store.SessionOf(err))
		return none, store.AsFault(what, err)
	}
	c.session.Merge(reply.SessionToken)
	if len(reply.OperationResults) != 1 {
		return none, store.AsFault(what, store.ErrNoResult)
	}
	result := reply.OperationResults[0]
	if result.StatusCode != http.StatusOK {
		return none, store.StatusFault(what, int(result.StatusCode), reply.RawResponse, store.ErrRefused)
	}
	return result, nil
}
