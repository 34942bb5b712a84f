package changefeed

import (
	"context"
	"errors"
	"slices"
	"time"
)

// presence is what this host tells the others about itself beside its leases.
type presence struct {
	*env
	etags *etagHistory
	swept sweepings
	etag  string    // of this host's record, "" if there is none
	spare bool      // it says so
	at    time.Time // when it was last written
}

// updateHeartbeat writes this host's heartbeat while it is due something and owns
// nothing, and removes it once its leases speak for it. A spare host, which would change
// nobody's plan, says once in calm that it is there, so that a host that leaves tells it
// (see announce).
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

// spareExpiries is after how many times Expiry without a word a spare host is gone. It
// costs a host that leaves a short wait to believe too long in it, and nobody anything else.
const spareExpiries = 100

// write stores this host's record and reports whether it stands.
func (p *presence) write(ctx context.Context, h heartbeat, now time.Time) bool {
	h.ID, h.Host, h.Incarnation = p.ids.host(p.opts.Host, p.incarnation), p.opts.Host, p.incarnation
	h.ExpiryMS, h.Timestamp = p.opts.Expiry.Milliseconds(), p.opts.Now().UTC().Format(timestampFormat)
	timed, cancel := p.withStoreTimeout(ctx)
	defer cancel()
	write := p.store.Replace
	if p.etag == "" {
		write = p.store.Create
	}
	etag, err := write(timed, Record{ID: h.ID, ETag: p.etag, Body: mustMarshal(h)})
	switch {
	case err == nil:
		p.etag, p.spare, p.at = etag, h.Spare, now
		return true
	case errors.Is(err, ErrNotFound):
		p.etag = ""
	case errors.Is(err, ErrExists), errors.Is(err, ErrETagMismatch):
		// An answer got lost: the record is this host's own, no other has its id.
		if record, err := p.store.Read(timed, h.ID); err == nil {
			p.etag = record.ETag // what it says is written with the next one
		}
	default:
		p.reportError("", "heartbeat", err)
	}
	return false
}

// leaseListed reports whether the last look showed a lease of this host.
func (p *presence) leaseListed(seen listing) bool {
	return slices.ContainsFunc(seen.leases, func(l Lease) bool { return l.ownerKey() == p.self })
}

func (p *presence) deleteHeartbeat(ctx context.Context) {
	if p.etag == "" {
		return
	}
	timed, cancel := p.withStoreTimeout(ctx)
	defer cancel()
	p.reportError("", "heartbeat", unlessLostRace(p.store.Delete(timed, p.ids.host(p.opts.Host, p.incarnation), p.etag)))
	p.etag = "" // one that stays counts as gone soon, and is swept by others
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
		timed, cancel := p.withStoreTimeout(ctx)
		_ = p.store.Delete(timed, id, p.etags.seen[id].etag) // somebody will
		cancel()
	}
}

// heartbeat is the record by which a host that owns nothing is counted. A host
// that owns leases writes none, its renewals show that it lives, but for one that
// tells others that it leaves.
type heartbeat struct {
	ID          string `json:"id"`
	Host        string `json:"host"`
	Incarnation string `json:"incarnation"`
	ExpiryMS    int64  `json:"expiryMs"`
	Draining    bool   `json:"draining,omitempty"` // it is about to release its leases
	Spare       bool   `json:"spare,omitempty"`    // it is due nothing
	Timestamp   string `json:"timestamp"`
}

func (h heartbeat) key() hostKey { return newHostKey(h.Host, h.Incarnation) }
