package processor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/tests/bench/measure"
)

// connect creates the containers, stores n documents in one of them, a hundred per batch,
// and returns a client.
func connect(ctx context.Context, srv *cosmosemu.Server, ranges, n int) (*azcosmos.Client, error) {
	for _, c := range []cosmosemu.ContainerProps{{ID: "data", PartitionKey: []string{"/pk"}, Partitions: ranges}, {ID: "leases", PartitionKey: []string{"/id"}}} {
		if err := srv.CreateContainer("db", c); err != nil {
			return nil, err
		}
	}
	key, err := azcosmos.NewKeyCredential(srv.Key())
	if err != nil {
		return nil, err
	}
	client, err := azcosmos.NewClientWithKey(srv.Endpoint(), key, cosmosfeed.ClientOptions(srv.ClientOptions()))
	if err != nil {
		return nil, err
	}
	return client, fill(ctx, client, n)
}

func fill(ctx context.Context, client *azcosmos.Client, n int) error {
	data, err := client.NewContainer("db", "data")
	if err != nil {
		return err
	}
	for i := 0; i < n; i += 100 {
		pk := fmt.Sprintf("key-%d", i/100)
		batch := data.NewTransactionalBatch(azcosmos.NewPartitionKeyString(pk))
		for j := range 100 {
			doc, err := json.Marshal(map[string]any{"id": fmt.Sprint(i + j), "pk": pk, "data": body})
			if err != nil {
				return err
			}
			batch.CreateItem(doc, nil)
		}
		if reply, err := data.ExecuteTransactionalBatch(ctx, batch, nil); err != nil || !reply.Success {
			return errors.Join(errors.New("a batch of documents was refused"), err)
		}
	}
	return nil
}

// bareLoop reads every range with the SDK and ignores the documents.
func bareLoop(ctx context.Context, client *azcosmos.Client, n int) (measure.Sample, error) {
	return measure.Took(int64(n/page), func() error {
		data, err := client.NewContainer("db", "data")
		if err != nil {
			return err
		}
		ranges, err := data.ReadFeedRanges(ctx, nil)
		if err != nil {
			return err
		}
		got := 0
		for i := range ranges {
			o := &azcosmos.ChangeFeedOptions{FeedRange: &ranges[i], MaxItemCount: page}
			for {
				read, err := data.ReadChangeFeed(ctx, o)
				if err != nil {
					return err
				}
				if len(read.Items) == 0 {
					break
				}
				got += len(read.Items)
				o = &azcosmos.ChangeFeedOptions{Continuation: &read.ContinuationToken, MaxItemCount: page}
			}
		}
		return complete(got, n)
	})
}
