package simulation

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"feedbox/changefeed"
)

// history keeps all versions of every record, for stale reads, and passes each write to the
// verifier.
type history struct {
	v *verifier

	mu       sync.Mutex // guards the fields below
	versions map[string][]version
}

type version struct {
	at      time.Time
	record  changefeed.Record
	deleted bool
}

func newHistory(v *verifier) *history {
	return &history{v: v, versions: map[string][]version{}}
}

// wrote records a write that took effect.
func (h *history) wrote(r changefeed.Record, deleted bool) {
	h.mu.Lock()
	h.versions[r.ID] = append(h.versions[r.ID], version{at: time.Now(), record: r, deleted: deleted})
	h.mu.Unlock()
	if !deleted {
		h.v.stored(r)
	}
}

func (h *history) asOf(id string, at time.Time) (changefeed.Record, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asOfLocked(id, at)
}

func (h *history) asOfLocked(id string, at time.Time) (changefeed.Record, bool) {
	versions := h.versions[id]
	for i := len(versions) - 1; i >= 0; i-- {
		if v := versions[i]; !v.at.After(at) {
			return v.record, !v.deleted
		}
	}
	return changefeed.Record{}, false
}

func (h *history) list(prefix string, at time.Time) []changefeed.Record {
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []changefeed.Record
	for id := range h.versions {
		if strings.HasPrefix(id, prefix) {
			if r, ok := h.asOfLocked(id, at); ok {
				found = append(found, r)
			}
		}
	}
	slices.SortFunc(found, func(a, b changefeed.Record) int { return strings.Compare(a.ID, b.ID) })
	return found
}

// hostStore is the lease store as seen by one host.
type hostStore struct {
	changefeed.LeaseStore
	host *host
	h    *history
}

func (s *hostStore) List(ctx context.Context, prefix string) (found []changefeed.Record, err error) {
	err = s.host.call(ctx, &s.host.sim.store, func() error {
		if age := s.host.sim.store.stale(); age > 0 {
			found = s.h.list(prefix, time.Now().Add(-age))
			return nil
		}
		found, err = s.LeaseStore.List(ctx, prefix)
		return err
	})
	return found, err
}

func (s *hostStore) Read(ctx context.Context, id string) (r changefeed.Record, err error) {
	err = s.host.call(ctx, &s.host.sim.store, func() error {
		if age := s.host.sim.store.stale(); age > 0 {
			var ok bool
			if r, ok = s.h.asOf(id, time.Now().Add(-age)); !ok {
				return changefeed.ErrNotFound
			}
			return nil
		}
		r, err = s.LeaseStore.Read(ctx, id)
		return err
	})
	return r, err
}

func (s *hostStore) Create(ctx context.Context, r changefeed.Record) (string, error) {
	return s.write(ctx, r, s.LeaseStore.Create)
}

func (s *hostStore) Replace(ctx context.Context, r changefeed.Record) (string, error) {
	return s.write(ctx, r, s.LeaseStore.Replace)
}

func (s *hostStore) write(ctx context.Context, r changefeed.Record, do func(context.Context, changefeed.Record) (string, error)) (etag string, err error) {
	err = s.host.call(ctx, &s.host.sim.store, func() error {
		if etag, err = do(ctx, r); err == nil {
			r.ETag = etag
			s.h.wrote(r, false)
		}
		return err
	})
	return etag, err
}

func (s *hostStore) Delete(ctx context.Context, id, etag string) error {
	if s.host.sim.config.NoDelete && s.host.name != "operator" { // who could not end a pause
		return errNotAllowed
	}
	return s.host.call(ctx, &s.host.sim.store, func() error {
		err := s.LeaseStore.Delete(ctx, id, etag)
		if err == nil {
			s.h.wrote(changefeed.Record{ID: id}, true)
		}
		return err
	})
}

// hostFeed is the feed as seen by one host.
type hostFeed struct {
	changefeed.Feed
	host *host
}

func (f *hostFeed) Read(ctx context.Context, req changefeed.ReadRequest) (page *changefeed.Page, err error) {
	err = f.host.call(ctx, &f.host.sim.feed, func() error {
		if err := f.host.sim.feed.answers(ctx); err != nil {
			return err
		}
		page, err = f.Feed.Read(ctx, req)
		return err
	})
	return page, err
}
