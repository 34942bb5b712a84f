package relay

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/errgroup"

	"feedbox/tests/bench/measure"
)

// readAlone reads the whole feed through azcosmos, with a goroutine per range and the relay's
// page size.
func (st *store) readAlone(ctx context.Context) (measure.Sample, error) {
	from, err := st.cosmos.Client().NewContainer(database, container)
	if err != nil {
		return measure.Sample{}, err
	}
	ranges, err := from.ReadFeedRanges(ctx, nil)
	if err != nil {
		return measure.Sample{}, err
	}
	read := make([]int, len(ranges))
	sample, err := measure.Took(int64(st.shape.total()), func() error {
		group, ctx := errgroup.WithContext(ctx)
		for i := range ranges {
			group.Go(func() error {
				options := azcosmos.ChangeFeedOptions{FeedRange: &ranges[i], MaxItemCount: maxItems}
				for {
					page, err := from.ReadChangeFeed(ctx, &options)
					if err != nil || page.Count == 0 {
						return err
					}
					read[i] += page.Count
					options.Continuation = &page.ContinuationToken
				}
			})
		}
		return group.Wait()
	})
	if err != nil {
		return sample, err
	}
	documents := 0
	for _, n := range read {
		documents += n
	}
	if want := st.shape.total() + st.shape.Contacts; documents != want {
		return sample, fmt.Errorf("the feed has %d documents, want %d", documents, want)
	}
	return sample, nil
}
