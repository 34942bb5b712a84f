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

// unreadAfter is how long a range is due to be read without a reply before it is reported.
// Half a timeout longer than one read, so that a single lost request is no report.
func (o *Options) unreadAfter() time.Duration { return o.ReadTimeout * 3 / 2 }
