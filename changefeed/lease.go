package changefeed

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// LeaseState says what a lease record stands for. See doc.go for the drawing.
type LeaseState string

const (
	// LeaseLive can be owned and processed.
	LeaseLive LeaseState = ""
	// LeasePending was created by a split that may not have been completed. It
	// is never owned; completing the split makes it live.
	LeasePending LeaseState = "pending"
	// LeaseSplit was replaced by its children, which may not all exist yet. It is
	// never processed again.
	LeaseSplit LeaseState = "split"
	// LeaseDone was replaced and all its children are live: it may be deleted.
	LeaseDone LeaseState = "done"
)

// Health is what an operator needs to know of a range.
type Health string

const (
	// Healthy means that the last delivery succeeded, or there was none yet.
	Healthy Health = ""
	// Retrying means that something fails and is being tried again.
	Retrying Health = "retrying"
	// Stopped means that the poison policy stopped the range; it waits for an operator.
	Stopped Health = "stopped"
)

// Lease is one lease record: who processes a feed range, and how far it is.
type Lease struct {
	ID   string
	ETag string
	// Version of the document format: 1 for a lease of an effective partition
	// key range, 0 for a lease of a physical range as older .NET processors
	// make them.
	Version int
	// Token is the lease token: min-max, or the physical range's id (version 0).
	Token string
	Range FeedRange
	// Owner is the host's name, empty if nobody owns the lease.
	Owner string
	// Incarnation is the owner's random identity: two hosts of one name differ.
	Incarnation string
	// Epoch rises by one each time the lease is acquired: a fencing token.
	Epoch int64
	// Most is the owner's MaxLeases, for other hosts to reckon with.
	Most int
	// Expiry is how long the owner lets its lease live without a write. An
	// observer waits at least this long.
	Expiry time.Duration
	// Continuation is the checkpoint; empty until the first one, then Since says
	// where to start.
	Continuation string
	Since        time.Time
	// LSN and ChangeTime are those of the last change before the checkpoint.
	LSN        int64
	ChangeTime int64
	// Timestamp is the writer's wall clock. Nobody decides by it.
	Timestamp time.Time
	// Mode of the feed; empty is the incremental (latest version) feed.
	Mode string

	State    LeaseState
	Parent   string       // id of the record this one was split from
	Children []RangeToken // what a split replaces this lease by
	Handoff  hostKey      // who may acquire a released lease first
	Previous string       // name of the last owner, preferred on a restart

	Health   Health
	Failures int       // consecutive failures of the delivery that is retried
	Error    string    // the last one
	Failing  time.Time // since when
	Attempts []DocumentAttempts

	Request Request // what an operator asks of the owner

	properties map[string]string          // members of properties this package does not know
	unknown    map[string]json.RawMessage // members of the document it does not know
}

// DocumentAttempts counts how often one document failed.
type DocumentAttempts struct {
	Document string `json:"d"` // LSN:id
	Count    int    `json:"n"`
}

// Request is an operator's wish, carried out by whoever owns the lease.
type Request struct {
	Paused  bool        // hold the lease but deliver nothing
	Release bool        // give the lease up once
	Retry   bool        // forget counted attempts and a stop
	Rewind  *RangeToken // continue from here
}

func (r Request) equal(o Request) bool {
	if (r.Rewind == nil) != (o.Rewind == nil) {
		return false
	}
	if r.Rewind != nil && (r.Rewind.Continuation != o.Rewind.Continuation || !r.Rewind.Since.Equal(o.Rewind.Since)) {
		return false
	}
	return r.Paused == o.Paused && r.Release == o.Release && r.Retry == o.Retry
}

// hostKey identifies a running host: name and incarnation. Two processes with
// one name have different keys.
type hostKey string

func newHostKey(name, incarnation string) hostKey {
	if name == "" && incarnation == "" {
		return ""
	}
	return hostKey(name + "/" + incarnation)
}

// host is the key of the lease's owner, or "".
func (l *Lease) host() hostKey { return newHostKey(l.Owner, l.Incarnation) }

// clone is a copy that shares nothing that is ever changed in place.
func (l *Lease) clone() Lease {
	c := *l
	c.Children = slices.Clone(l.Children)
	c.Attempts = slices.Clone(l.Attempts)
	c.properties = maps.Clone(l.properties)
	c.unknown = maps.Clone(l.unknown)
	if l.Request.Rewind != nil {
		rewind := *l.Request.Rewind
		c.Request.Rewind = &rewind
	}
	return c
}

// disown takes everything about the owner off the record but its name.
func (l *Lease) disown() {
	l.Previous = l.Owner
	l.Owner, l.Incarnation, l.Expiry, l.Most, l.Handoff = "", "", 0, 0, ""
}

// position is where processing of the lease goes on.
func (l Lease) position() RangeToken {
	return RangeToken{Range: l.Range, Continuation: l.Continuation, Since: l.Since}
}
