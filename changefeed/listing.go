package changefeed

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"time"
)

type lister struct {
	*env
	etags   etagHistory
	checked time.Time // when the container was last identified
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
	if known { // a takeover waits for this
		timed, cancel := context.WithTimeout(ctx, l.opts.Expiry/4)
		defer cancel()
		ctx = timed
	}
	source, ids, err := identify(ctx, l.feed, l.opts.Processor, l.opts.LeasePrefixHost)
	switch {
	case err != nil && known:
		l.checked = began
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
	leases  []Lease
	info    *Lease
	hosts   []heartbeat
	paused  bool
	refused []RefusedLease
	content uint64 // hash of all records
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
	seen.content = l.etags.content
	for _, record := range records {
		l.reportError(record.ID, OpCheckLeases, record.Doubt)
		switch {
		case record.ID == l.ids.info() || l.ids.isLease(record.ID):
			lease, err := decodeLease(record)
			switch {
			case err != nil:
				seen.refused = append(seen.refused, RefusedLease{ID: record.ID, Reason: err.Error()})
			case record.ID == l.ids.info():
				seen.info = &lease
			default:
				seen.leases = append(seen.leases, lease)
			}
		case record.ID == l.ids.pause():
			seen.paused = true
		case l.ids.isHost(record.ID):
			var h heartbeat
			if json.Unmarshal(record.Body, &h) == nil {
				h.etag = record.ETag
				seen.hosts = append(seen.hosts, h)
			}
		}
	}
	return seen, nil
}

// kept is what a run keeps of the last listing in which it balanced.
type kept struct {
	initialized bool
	hosts       []heartbeat
	leases      packedLeases
	content     uint64
}

func (k *kept) keep(seen listing) {
	if k.content != seen.content || k.leases.none() {
		k.leases = packLeases(seen.leases)
	}
	k.initialized, k.hosts, k.content = seen.info != nil, seen.hosts, seen.content
}

// listing returns the hosts and, with at least the fields that packLeases keeps, the leases.
func (k *kept) listing() listing { return listing{hosts: k.hosts, leases: k.leases.unpack()} }

// packedLeases are leases in little memory: some 25 bytes each instead of 2 KB if there are many. Every host keeps
// every lease, so a thousand hosts keep a thousand copies of each. A few are not worth the time of packing.
type packedLeases struct {
	few  []Lease
	many []byte // compressed
}

// packFrom is the number of leases from which on they are compressed. That takes some 1 MB for a moment, and
// doubled the processor time of simulations of small fleets.
const packFrom = 100

func (p packedLeases) none() bool { return p.few == nil && p.many == nil }

type packedLease struct {
	Lease     Lease
	TakenOver bool
	Loaded    string
}

// packLeases packs what a drain and a repair need: owners and positions.
func packLeases(leases []Lease) packedLeases {
	if len(leases) < packFrom {
		return packedLeases{few: leases}
	}
	packed := make([]packedLease, len(leases))
	for i := range leases {
		l := &leases[i]
		packed[i] = packedLease{TakenOver: l.takenOver, Loaded: l.loaded, Lease: Lease{
			ID: l.ID, Range: l.Range, State: l.State,
			Owner: l.Owner, Incarnation: l.Incarnation, Expiry: l.Expiry, Handoff: l.Handoff, Previous: l.Previous,
			Epoch: l.Epoch, History: l.History, Continuation: l.Continuation, Since: l.Since,
			LSN: l.LSN, ChangeTime: l.ChangeTime, Reached: l.Reached, Term: l.Term, Lost: l.Lost,
			LastRead: l.LastRead, Backlog: l.Backlog,
			Request: l.Request,
		}}
	}
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err == nil {
		err = gob.NewEncoder(w).Encode(packed)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil { // the level is valid, the types are fixed, and a buffer accepts all bytes
		panic("changefeed: pack leases: " + err.Error())
	}
	return packedLeases{many: bytes.Clone(b.Bytes())}
}

func (p packedLeases) unpack() []Lease {
	if p.many == nil {
		return slices.Clone(p.few)
	}
	var packed []packedLease
	if err := gob.NewDecoder(flate.NewReader(bytes.NewReader(p.many))).Decode(&packed); err != nil {
		panic("changefeed: unpack leases: " + err.Error()) // packLeases wrote them in this process
	}
	leases := make([]Lease, len(packed))
	for i := range packed {
		leases[i] = packed[i].Lease
		leases[i].takenOver, leases[i].loaded = packed[i].TakenOver, packed[i].Loaded
	}
	return leases
}

// etagHistory decides liveness: a record whose ETag has not changed for long enough on this
// host's own clock belongs to a host that is gone. Timestamps of other hosts or of the
// store are never compared, because their clocks differ.
//
// It has hashes of ids and ETags, because each host keeps an entry for every lease. Two equal
// hashes of 64 bits would delay a takeover, or start one of a living host, whose next write
// then fails.
type etagHistory struct {
	began   time.Time
	seen    map[uint64]etagSeen // by hash of the id
	content uint64              // hash of the last listing
}

type etagSeen struct {
	etag    uint64
	since   time.Duration // from began until this ETag was first seen
	changed bool          // not the first ETag seen
}

var hashSeed = maphash.MakeSeed()

// hash is one of this process alone.
func hash(text string) uint64 { return maphash.String(hashSeed, text) }

// observe records a listing and forgets records that are gone.
func (s *etagHistory) observe(records []Record, now time.Time) {
	if s.seen == nil {
		s.began = now
	}
	s.content = 0
	next := make(map[uint64]etagSeen, len(records))
	for _, r := range records {
		id, etag := hash(r.ID), hash(r.ETag)
		seen, known := s.seen[id]
		if !known || seen.etag != etag {
			seen = etagSeen{etag: etag, since: now.Sub(s.began), changed: known}
		}
		next[id] = seen
		s.content += hash(r.ID + " " + r.ETag + " " + r.Term) // a sum does not depend on their order
	}
	s.seen = next
}

// unchangedFor returns how long the record has been seen unchanged.
func (s *etagHistory) unchangedFor(id string, now time.Time) time.Duration {
	seen, ok := s.seen[hash(id)]
	if !ok {
		return 0
	}
	return now.Sub(s.began) - seen.since
}

// listed reports whether the last listing contained the record.
func (s *etagHistory) listed(id string) bool { _, there := s.seen[hash(id)]; return there }

// changed reports whether the record was written while this host watched.
func (s *etagHistory) changed(id string) bool { return s.seen[hash(id)].changed }
