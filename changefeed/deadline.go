package changefeed

import (
	"context"
	"fmt"
	"time"
)

// withDeadline makes a request that ends after limit.
func withDeadline[T any](ctx context.Context, limit time.Duration, request func(ctx context.Context) (T, error)) (T, error) {
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	result, err := request(timed)
	if err != nil && timed.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no reply within %s: %w", limit, err)
	}
	return result, err
}

// timedFeed is a feed whose requests have a deadline.
type timedFeed struct {
	Feed
	limit time.Duration
}

func (f timedFeed) Source(ctx context.Context) (Source, error) {
	return withDeadline(ctx, f.limit, f.Feed.Source)
}

func (f timedFeed) Ranges(ctx context.Context) ([]FeedRange, error) {
	return withDeadline(ctx, f.limit, f.Feed.Ranges)
}

func (f timedFeed) Now(ctx context.Context, r FeedRange) (string, error) {
	return withDeadline(ctx, f.limit, func(ctx context.Context) (string, error) { return f.Feed.Now(ctx, r) })
}

func (f timedFeed) Read(ctx context.Context, req ReadRequest) (*Page, error) {
	return withDeadline(ctx, f.limit, func(ctx context.Context) (*Page, error) { return f.Feed.Read(ctx, req) })
}

// timedStore is a lease store whose requests have a deadline: whatever a request is for, one that is
// never answered must not stop its caller. A listing has longer, because it has many pages.
type timedStore struct {
	LeaseStore
	limit, listing time.Duration
}

// timed returns the store of a processor. A request is short, because a later cycle makes up for one
// that times out.
func timed(store LeaseStore, expiry time.Duration) timedStore {
	return timedStore{store, expiry / 4, expiry / 2}
}

func (s timedStore) List(ctx context.Context, prefix string) ([]Record, error) {
	return withDeadline(ctx, s.listing, func(ctx context.Context) ([]Record, error) { return s.LeaseStore.List(ctx, prefix) })
}

func (s timedStore) Read(ctx context.Context, id string) (Record, error) {
	return withDeadline(ctx, s.limit, func(ctx context.Context) (Record, error) { return s.LeaseStore.Read(ctx, id) })
}

func (s timedStore) Create(ctx context.Context, r Record) (string, error) {
	return withDeadline(ctx, s.limit, func(ctx context.Context) (string, error) { return s.LeaseStore.Create(ctx, r) })
}

func (s timedStore) Replace(ctx context.Context, r Record) (string, error) {
	return withDeadline(ctx, s.limit, func(ctx context.Context) (string, error) { return s.LeaseStore.Replace(ctx, r) })
}

func (s timedStore) Delete(ctx context.Context, id, etag string) error {
	_, err := withDeadline(ctx, s.limit, func(ctx context.Context) (struct{}, error) { return struct{}{}, s.LeaseStore.Delete(ctx, id, etag) })
	return err
}

// unreadAfter is how long a range is due to be read without a reply before it is reported.
// Half a timeout longer than one read, so that a single lost request is no report.
func (o *Options) unreadAfter() time.Duration { return o.ReadTimeout * 3 / 2 }
