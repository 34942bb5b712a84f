package playground

import (
	"context"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/lab/verify"
)

// UserAgent is the prefix of the user agent of observers: the judge and the explorer. Faults
// do not affect their calls.
const UserAgent = "feedbox-observer"

// observing reports whether a call comes from an observer.
func observing(c *cosmosemu.Call) bool {
	return strings.HasPrefix(c.Header.Get("User-Agent"), UserAgent)
}

// cosmosStore reads the emulator through the SDK.
type cosmosStore struct{ data, lot *azcosmos.ContainerClient }

func openStore(s *cosmosemu.Server, n *Names) (*cosmosStore, error) {
	credential, err := azcosmos.NewKeyCredential(s.Key())
	if err != nil {
		return nil, err
	}
	client, err := azcosmos.NewClientWithKey(s.Endpoint(), credential, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: s.HTTPClient(), Telemetry: policy.TelemetryOptions{ApplicationID: UserAgent},
	}})
	if err != nil {
		return nil, err
	}
	c := &cosmosStore{}
	if c.data, err = client.NewContainer(n.Database, n.Container); err != nil {
		return nil, err
	}
	c.lot, err = client.NewContainer(n.Database, n.Parked)
	return c, err
}

func (c *cosmosStore) keys(ctx context.Context, keys []string) (aggregates []verify.Aggregate, events []verify.Event, strange []string, err error) {
	for _, key := range keys {
		err := each(ctx, c.data, azcosmos.NewPartitionKeyString(key), func(raw []byte) {
			d, err := verify.DecodeDocument(raw)
			switch {
			case err != nil:
				strange = append(strange, fmt.Sprintf("I1 key %s: %v", key, err))
			case d.Kind == verify.KindAggregate:
				aggregates = append(aggregates, d.Aggregate())
			case d.Kind == verify.KindEvent:
				events = append(events, d.Event())
			}
		})
		if err != nil {
			return nil, nil, nil, err
		}
	}
	return aggregates, events, strange, nil
}

func (c *cosmosStore) parked(ctx context.Context) (map[string]bool, error) {
	ids := map[string]bool{}
	return ids, each(ctx, c.lot, azcosmos.NewPartitionKey(), func(raw []byte) {
		if d, _ := verify.DecodeDocument(raw); d.Kind == verify.KindParked {
			ids[d.ID] = true
		}
	})
}

func each(ctx context.Context, c *azcosmos.ContainerClient, key azcosmos.PartitionKey, use func(raw []byte)) error {
	pager := c.NewQueryItemsPager("SELECT * FROM c", key, nil)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, raw := range page.Items {
			use(raw)
		}
	}
	return nil
}
