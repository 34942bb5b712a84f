package changefeed

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

type lister struct {
	*env
	etags   etagHistory
	decoded map[string]Lease // by id, from the last listing; saves decoding unchanged records
	checked time.Time        // when the container was last identified
}

// recreatedError means that the leases of this run belong to a container that was deleted.
type recreatedError struct{ to Source }

func (e *recreatedError) Error() string { return ErrRecreated.Error() }

// checkSource identifies the container, and again each Expiry, because another one may be there
// under its name. Only the first failure is an error: later ones say nothing about the leases.
func (l *lister) checkSource(ctx context.Context) error {
	began := l.clock.Now()
	known := l.ids != (recordIDs{})
	if known && began.Sub(l.checked) < l.opts.Expiry {
		return nil
	}
	source, ids, err := identify(ctx, l.feed, l.opts.Processor, l.opts.LeasePrefixHost)
	switch {
	case err != nil && known:
		l.reportError("", "identify the container", err)
		return nil
	case err != nil:
		return err
	case known && source != l.source:
		return &recreatedError{to: source}
	}
	if !known {
		l.source, l.ids = source, ids // never changed: workers read them
	}
	l.checked = began
	return nil
}

// listing is the content of all records at one time.
type listing struct {
	leases  []Lease // shared with later listings: copy before a change
	info    *Lease
	hosts   []heartbeat
	paused  bool
	refused []RefusedLease
}

func (v *listing) byID() map[string]Lease {
	leases := make(map[string]Lease, len(v.leases))
	for _, l := range v.leases {
		leases[l.ID] = l
	}
	return leases
}

func (l *lister) list(ctx context.Context) (listing, error) {
	var seen listing
	if err := l.checkSource(ctx); err != nil {
		return seen, err
	}
	records, err := l.store.List(ctx, l.ids.all())
	if err != nil {
		return seen, fmt.Errorf("list leases: %w", err)
	}
	l.etags.observe(records, l.clock.Now())
	decoded := make(map[string]Lease, len(records))
	for _, record := range records {
		l.reportError(record.ID, OpCheckLeases, record.Doubt)
		switch {
		case record.ID == l.ids.info() || l.ids.isLease(record.ID):
			lease := l.decoded[record.ID]
			if lease.ETag != record.ETag {
				if lease, err = decodeLease(record); err != nil {
					seen.refused = append(seen.refused, RefusedLease{ID: record.ID, Reason: err.Error()})
					continue
				}
			}
			decoded[record.ID] = lease
			if record.ID == l.ids.info() {
				seen.info = &lease
			} else {
				seen.leases = append(seen.leases, lease)
			}
		case record.ID == l.ids.pause():
			seen.paused = true
		case l.ids.isHost(record.ID):
			var h heartbeat
			if json.Unmarshal(record.Body, &h) == nil {
				seen.hosts = append(seen.hosts, h)
			}
		}
	}
	l.decoded = decoded
	return seen, nil
}

// etagHistory decides liveness: a record whose ETag has not changed for long enough on this
// host's own clock belongs to a host that is gone. Timestamps of other hosts or of the
// store are never compared, because their clocks differ.
type etagHistory struct {
	seen map[string]etagSeen
}

type etagSeen struct {
	etag    string
	since   time.Time // when this ETag was first seen
	changed bool      // not the first ETag seen
}

// observe records a listing and forgets records that are gone.
func (s *etagHistory) observe(records []Record, now time.Time) {
	next := make(map[string]etagSeen, len(records))
	for _, r := range records {
		seen, known := s.seen[r.ID]
		if seen.etag != r.ETag {
			seen = etagSeen{etag: r.ETag, since: now, changed: known}
		}
		next[r.ID] = seen
	}
	s.seen = next
}

// unchangedFor returns how long the record has been seen unchanged.
func (s *etagHistory) unchangedFor(id string, now time.Time) time.Duration {
	seen, ok := s.seen[id]
	if !ok {
		return 0
	}
	return now.Sub(seen.since)
}

// listed reports whether the last listing contained the record.
func (s *etagHistory) listed(id string) bool { _, there := s.seen[id]; return there }

// changed reports whether the record was written while this host watched.
func (s *etagHistory) changed(id string) bool { return s.seen[id].changed }
