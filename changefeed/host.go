package changefeed

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// name is the part of the key users gave.
func (h hostKey) name() string {
	name, _, _ := strings.Cut(string(h), "/")
	return name
}

// heartbeat is the record by which a host that owns nothing is counted. A host
// that owns leases writes none, its renewals show that it lives, but for one that
// tells others that it leaves.
type heartbeat struct {
	ID          string `json:"id"`
	Host        string `json:"host"`
	Incarnation string `json:"incarnation"`
	ExpiryMS    int64  `json:"expiryMs"`
	Most        int    `json:"maxLeases,omitempty"`
	Draining    bool   `json:"draining,omitempty"` // it is about to release its leases
	Spare       bool   `json:"spare,omitempty"`    // it is due nothing
	Timestamp   string `json:"timestamp"`
}

func (h heartbeat) key() hostKey { return newHostKey(h.Host, h.Incarnation) }

func (h heartbeat) encode(etag string) Record {
	return Record{ID: h.ID, ETag: etag, Body: merge(h, nil)}
}

func decodeHeartbeat(r Record) (heartbeat, error) {
	var h heartbeat
	if err := json.Unmarshal(r.Body, &h); err != nil {
		return h, fmt.Errorf("heartbeat %s: %w", r.ID, err)
	}
	return h, nil
}

// sightings judges liveness: a record whose ETag has not changed for long enough
// on this host's own clock belongs to a host that is gone. No timestamp of
// another host or of the store is ever compared.
type sightings struct {
	seen map[string]sighting
}

type sighting struct {
	etag    string
	since   time.Time // when this ETag was first seen
	changes int       // how often it changed while being watched
}

// observe notes what a listing showed and forgets records that are gone.
func (s *sightings) observe(records []Record, now time.Time) {
	next := make(map[string]sighting, len(records))
	for _, r := range records {
		old, known := s.seen[r.ID]
		switch {
		case !known:
			next[r.ID] = sighting{etag: r.ETag, since: now}
		case old.etag != r.ETag:
			next[r.ID] = sighting{etag: r.ETag, since: now, changes: old.changes + 1}
		default:
			next[r.ID] = old
		}
	}
	s.seen = next
}

// age is how long the record has been seen unchanged.
func (s *sightings) age(id string, now time.Time) time.Duration {
	seen, ok := s.seen[id]
	if !ok {
		return 0
	}
	return now.Sub(seen.since)
}

// changed reports whether the record was written while this host watched.
func (s *sightings) changed(id string) bool { return s.seen[id].changes > 0 }
