package changefeed

import (
	"context"
	"sync/atomic"
)

// RequestCounts counts requests as they are made.
type RequestCounts struct {
	feedReads, list, read, create, replace, remove atomic.Int64
}

// RequestSnapshot is how many requests were made of each kind.
type RequestSnapshot struct {
	FeedReads                                                         int64
	LeaseLists, LeaseReads, LeaseCreates, LeaseReplaces, LeaseDeletes int64
}

// Leases is the number of requests to the lease store.
func (s RequestSnapshot) Leases() int64 {
	return s.LeaseLists + s.LeaseReads + s.LeaseCreates + s.LeaseReplaces + s.LeaseDeletes
}

// Total is the number of all requests.
func (s RequestSnapshot) Total() int64 { return s.FeedReads + s.Leases() }

func (c *RequestCounts) snapshot() RequestSnapshot {
	return RequestSnapshot{
		FeedReads: c.feedReads.Load(), LeaseLists: c.list.Load(), LeaseReads: c.read.Load(),
		LeaseCreates: c.create.Load(), LeaseReplaces: c.replace.Load(), LeaseDeletes: c.remove.Load(),
	}
}

type countingFeed struct {
	Feed
	counts *RequestCounts
}

func (f *countingFeed) Now(ctx context.Context, r FeedRange) (string, error) {
	f.counts.feedReads.Add(1)
	return f.Feed.Now(ctx, r)
}

func (f *countingFeed) Read(ctx context.Context, req ReadRequest) (*Page, error) {
	f.counts.feedReads.Add(1)
	return f.Feed.Read(ctx, req)
}

type countingStore struct {
	LeaseStore
	counts *RequestCounts
}

func (s *countingStore) List(ctx context.Context, prefix string) ([]Record, error) {
	s.counts.list.Add(1)
	return s.LeaseStore.List(ctx, prefix)
}

func (s *countingStore) Read(ctx context.Context, id string) (Record, error) {
	s.counts.read.Add(1)
	return s.LeaseStore.Read(ctx, id)
}

func (s *countingStore) Create(ctx context.Context, r Record) (string, error) {
	s.counts.create.Add(1)
	return s.LeaseStore.Create(ctx, r)
}

func (s *countingStore) Replace(ctx context.Context, r Record) (string, error) {
	s.counts.replace.Add(1)
	return s.LeaseStore.Replace(ctx, r)
}

func (s *countingStore) Delete(ctx context.Context, id, etag string) error {
	s.counts.remove.Add(1)
	return s.LeaseStore.Delete(ctx, id, etag)
}
