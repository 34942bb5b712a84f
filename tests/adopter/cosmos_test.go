package main

import (
	"context"
	"encoding/json"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/infrastructure/store/cosmos/cosmosrelay"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"example.com/orders/open"
	"example.com/orders/store"
)

// inCosmos stores orders in containers of Cosmos DB.
type inCosmos struct{ client *azcosmos.Client }

func (k inCosmos) container(name string) *azcosmos.ContainerClient {
	c, _ := k.client.NewContainer(database, name) // the names are valid
	return c
}

func (k inCosmos) orders() (*store.Orders, error) { return store.Open(k.container("data")) }

func (k inCosmos) events() (relayport.Store, error) {
	return cosmosrelay.NewStore(k.client, &cosmosrelay.Options{Database: database})
}

func (k inCosmos) totals(context.Context) (consumer.Inbox, counter, error) {
	t, err := open.New(k.container("totals"))
	return t, t.Count, err
}

func (k inCosmos) total(ctx context.Context, id string) (t open.Total, err error) {
	reply, err := k.container("totals").ReadItem(ctx, azcosmos.NewPartitionKeyString(id), open.Name+"-total", nil)
	if err != nil {
		return t, err
	}
	return t, json.Unmarshal(reply.Value, &t)
}

func (k inCosmos) stored(ctx context.Context) (aggregates []verify.Aggregate, events []verify.Event, err error) {
	for pager := k.container("data").NewQueryItemsPager("SELECT * FROM c", azcosmos.NewPartitionKey(), nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, nil, err
		}
		for _, raw := range page.Items {
			d, err := verify.DecodeDocument(raw)
			switch {
			case err != nil:
				return nil, nil, err
			case d.Kind == verify.KindAggregate:
				aggregates = append(aggregates, d.Aggregate())
			case d.Kind == verify.KindEvent:
				events = append(events, d.Event())
			}
		}
	}
	return aggregates, events, nil
}
