package cosmos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/errgroup"

	"feedbox/tests/bench/cosmos/document"
)

// operation returns the worker of one client.
type operation func(c *azcosmos.ContainerClient) func(ctx context.Context) error

// stored is the number of documents for reads.
const stored = 1000

// serial makes ids unique over all turns.
var serial atomic.Int64

func create(c *azcosmos.ContainerClient) func(context.Context) error {
	return func(ctx context.Context) error {
		id := fmt.Sprint("c", serial.Add(1))
		_, err := c.CreateItem(ctx, azcosmos.NewPartitionKeyString(id), document.Body(id, id), nil)
		return err
	}
}

// read reads one of the first stored documents; of is their number.
func read(of int) operation {
	return func(c *azcosmos.ContainerClient) func(context.Context) error {
		return func(ctx context.Context) error {
			id := name(rand.N(of))
			_, err := c.ReadItem(ctx, azcosmos.NewPartitionKeyString(id), id, nil)
			return err
		}
	}
}

func upsert(c *azcosmos.ContainerClient) func(context.Context) error {
	return func(ctx context.Context) error {
		id := name(rand.N(stored))
		_, err := c.UpsertItem(ctx, azcosmos.NewPartitionKeyString(id), document.Body(id, id), nil)
		return err
	}
}

func batchOf5(c *azcosmos.ContainerClient) func(context.Context) error {
	return func(ctx context.Context) error {
		pk := fmt.Sprint("b", serial.Add(1))
		b := c.NewTransactionalBatch(azcosmos.NewPartitionKeyString(pk))
		for i := range 5 {
			b.CreateItem(document.Body(fmt.Sprint(i), pk), nil)
		}
		return executed(c.ExecuteTransactionalBatch(ctx, b, nil))
	}
}

func executed(reply azcosmos.TransactionalBatchResponse, err error) error {
	if err == nil && !reply.Success {
		err = fmt.Errorf("a batch was refused: %+v", reply.OperationResults)
	}
	return err
}

// feedPage reads the next page of 100 changes. After the last page it starts again.
func feedPage(c *azcosmos.ContainerClient) func(context.Context) error {
	var token string
	return func(ctx context.Context) error {
		o := &azcosmos.ChangeFeedOptions{FeedRange: &azcosmos.FeedRange{MaxExclusive: "FF"}, MaxItemCount: 100}
		if token != "" {
			o.Continuation = &token
		}
		reply, err := c.ReadChangeFeed(ctx, o)
		if token = reply.ContinuationToken; reply.Count < 100 {
			token = ""
		}
		return err
	}
}

// query finds one of the first documents by its id, a different one each time.
func query(of int) operation {
	return func(c *azcosmos.ContainerClient) func(context.Context) error {
		return func(ctx context.Context) error {
			id := name(rand.N(of))
			options := &azcosmos.QueryOptions{QueryParameters: []azcosmos.QueryParameter{{Name: "@id", Value: id}}}
			page, err := c.NewQueryItemsPager("SELECT * FROM c WHERE c.id = @id", azcosmos.NewPartitionKeyString(id), options).NextPage(ctx)
			if err == nil && len(page.Items) != 1 {
				err = errors.New("a query by id did not find one document")
			}
			return err
		}
	}
}

func name(n int) string { return fmt.Sprint("r", n) }

// fill stores count documents.
func (c *child) fill(ctx context.Context, count int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clients)
	for i := range count {
		group.Go(func() error {
			id := name(i)
			_, err := c.container.UpsertItem(ctx, azcosmos.NewPartitionKeyString(id), document.Body(id, id), nil)
			return err
		})
	}
	return group.Wait()
}
