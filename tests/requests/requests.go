// Package requests counts the requests of a processor to its feed and its lease store.
package requests

import (
	"context"
	"sync/atomic"

	"feedbox/changefeed"
)

// Counts counts requests.
type Counts struct {
	feedReads, list, read, create, replace, remove atomic.Int64
}

// Snapshot is the number of requests of each kind.
type Snapshot struct {
	FeedReads                                                         int64
	LeaseLists, LeaseReads, LeaseCreates, LeaseReplaces, LeaseDeletes int64
}

// Leases returns the number of requests to the lease store.
func (s Snapshot) Leases() int64 {
	return s.LeaseLists + s.LeaseReads + s.LeaseCreates + s.LeaseReplaces + s.LeaseDeletes
}

// Total returns the number of all requests.
func (s Snapshot) Total() int64 { return s.FeedReads + s.Leases() }

// Requests returns the numbers so far.
func (c *Counts) Requests() Snapshot {
	return Snapshot{
		FeedReads: c.feedReads.Load(), LeaseLists: c.list.Load(), LeaseReads: c.read.Load(),
		LeaseCreates: c.create.Load(), LeaseReplaces: c.replace.Load(), LeaseDeletes: c.remove.Load(),
	}
}

// Feed counts the requests to a feed.
func (c *Counts) Feed(f changefeed.Feed) changefeed.Feed { return &feed{Feed: f, counts: c} }

// Store counts the requests to a lease store.
func (c *Counts) Store(s changefeed.LeaseStore) changefeed.LeaseStore {
	return &store{LeaseStore: s, counts: c}
}

type feed struct {
	changefeed.Feed
	counts *Counts
}

// Place implements changefeed.Placer for a feed that does.
func (f *feed) Place(key string) (string, error) {
	return f.Feed.(changefeed.Placer).Place(key) //nolint:forcetypeassert // tests call it only with a Placer
}

func (f *feed) Now(ctx context.Context, r changefeed.FeedRange) (string, error) {
	f.counts.feedReads.Add(1)
	return f.Feed.Now(ctx, r)
}

func (f *feed) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	f.counts.feedReads.Add(1)
	return f.Feed.Read(ctx, req)
}

type store struct {
	changefeed.LeaseStore
	counts *Counts
}

func (s *store) List(ctx context.Context, prefix string) ([]changefeed.Record, error) {
	s.counts.list.Add(1)
	return s.LeaseStore.List(ctx, prefix)
}

func (s *store) Read(ctx context.Context, id string) (changefeed.Record, error) {
	s.counts.read.Add(1)
	return s.LeaseStore.Read(ctx, id)
}

func (s *store) Create(ctx context.Context, r changefeed.Record) (string, error) {
	s.counts.create.Add(1)
	return s.LeaseStore.Create(ctx, r)
}

func (s *store) Replace(ctx context.Context, r changefeed.Record) (string, error) {
	s.counts.replace.Add(1)
	return s.LeaseStore.Replace(ctx, r)
}

func (s *store) Delete(ctx context.Context, id, etag string) error {
	s.counts.remove.Add(1)
	return s.LeaseStore.Delete(ctx, id, etag)
}
