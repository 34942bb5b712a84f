package changefeed

import (
	"context"
	"errors"
	"slices"
	"time"
)

// presence maintains this host's own record, which the other hosts read beside the leases.
type presence struct {
	*env
	etags *etagHistory
	swept sweepSchedule
	etag  string    // of this host's record, "" if it has none
	spare bool      // the record marks the host as spare
	at    time.Time // time of the last write
}

// updateHeartbeat writes this host's heartbeat while it is due a lease and owns none, and
// deletes it once its leases show that it lives. A spare host writes one heartbeat, so that
// a leaving host knows to notify it (see announceLeaving). It does so only while nothing
// changes, because otherwise a leaving host needs no announcement.
func (p *presence) updateHeartbeat(ctx context.Context, seen listing, now time.Time, owner, spare, fast bool) {
	defer p.deleteOldHeartbeats(ctx, seen, now)
	if owner {
		if p.leaseListed(seen) {
			p.deleteHeartbeat(ctx)
		}
		return
	}
	every := p.opts.Renew
	if spare {
		if p.etag == "" && fast {
			return
		}
		every = spareExpiries / 2 * p.opts.Expiry
	}
	if p.etag != "" && p.spare == spare && now.Sub(p.at) < every {
		return
	}
	p.write(ctx, heartbeat{Spare: spare}, now)
}

// spareExpiries is the lifetime of a spare host's record, in multiples of Expiry. It is
// long because a spare host rarely writes. If the record outlives the host, a leaving host
// waits a little longer; nothing else depends on it.
const spareExpiries = 100

// write stores this host's record and reports whether it was stored.
func (p *presence) write(ctx context.Context, h heartbeat, now time.Time) bool {
	h.ID, h.Host, h.Incarnation = p.ids.host(p.opts.Host, p.incarnation), p.opts.Host, p.incarnation
	h.ExpiryMS, h.Timestamp = p.opts.Expiry.Milliseconds(), p.opts.Now().UTC().Format(timestampFormat)
	write := p.store.Replace
	if p.etag == "" {
		write = p.store.Create
	}
	etag, err := write(ctx, Record{ID: h.ID, ETag: p.etag, Body: mustMarshal(h)})
	switch {
	case err == nil:
		p.etag, p.spare, p.at = etag, h.Spare, now
		return true
	case errors.Is(err, ErrNotFound):
		p.etag = ""
	case errors.Is(err, ErrExists), errors.Is(err, ErrETagMismatch):
		// A reply was lost: only this host uses this id, so the record is its own.
		if record, err := p.store.Read(ctx, h.ID); err == nil {
			p.etag = record.ETag // the next write stores the content
		}
	default:
		p.reportError("", "heartbeat", err)
	}
	return false
}

// leaseListed reports whether the last listing contained a lease of this host.
func (p *presence) leaseListed(seen listing) bool {
	return slices.ContainsFunc(seen.leases, func(l Lease) bool { return l.ownerKey() == p.self })
}

func (p *presence) deleteHeartbeat(ctx context.Context) {
	if p.etag == "" {
		return
	}
	p.reportError("", "heartbeat", unlessLostRace(p.store.Delete(ctx, p.ids.host(p.opts.Host, p.incarnation), p.etag)))
	p.etag = "" // a record that remains expires soon and is deleted by other hosts
}

// deleteOldHeartbeats deletes heartbeats of hosts that are long gone.
func (p *presence) deleteOldHeartbeats(ctx context.Context, seen listing, now time.Time) {
	for _, h := range seen.hosts {
		id := p.ids.host(h.Host, h.Incarnation)
		gone := 10 * p.opts.Expiry
		if h.Spare {
			gone = spareExpiries * p.opts.Expiry
		}
		if h.key() == p.self || p.etags.unchangedFor(id, now) < gone || !p.swept.tryNow(id, now, 30*p.opts.Expiry) {
			continue
		}
		_ = p.store.Delete(ctx, id, h.etag) // another host will retry
	}
}

// heartbeat is the record of a host that owns nothing, so that the plan counts it. A host
// that owns leases writes none, because its renewals show that it lives. The exception is a
// leaving host, which announces that it leaves.
type heartbeat struct {
	ID          string `json:"id"`
	Host        string `json:"host"`
	Incarnation string `json:"incarnation"`
	ExpiryMS    int64  `json:"expiryMs"`
	Draining    bool   `json:"draining,omitempty"` // it is about to release its leases
	Spare       bool   `json:"spare,omitempty"`    // the host is due no lease
	Timestamp   string `json:"timestamp"`

	etag string // of the listed record
}

func (h heartbeat) key() hostKey { return newHostKey(h.Host, h.Incarnation) }
