package changefeed

import (
	"encoding/json"
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

// Lease is one lease record: who processes a feed range, and how far it is. What it leads
// to is never changed in place, so that a copy is one of its own.
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
	// Expiry is how long the owner lets its lease live without a write. An
	// observer waits at least this long; see lifetime for an owner that does not say.
	Expiry time.Duration
	// Continuation is the checkpoint; empty until the first one, then Since says
	// where to start.
	Continuation string
	Since        time.Time
	// LSN and ChangeTime are those of the last change before the checkpoint.
	LSN        int64
	ChangeTime int64
	// Delivered is the LSN of the last change that was handled, which lies behind the
	// checkpoint while a key before it waits; Handled counts the documents handled since
	// the lease was made. Both are of the record's last write.
	Delivered int64
	Handled   int64
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

	// foreign: another product wrote the record last. What "properties" say of the owner
	// is about the one before, and is not decoded. takenOver: it took the lease from an
	// owner that may not know it yet.
	foreign, takenOver bool

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
	a, b := r.Rewind, o.Rewind
	r.Rewind, o.Rewind = nil, nil
	return r == o && (a == b || a != nil && b != nil && a.Continuation == b.Continuation && a.Since.Equal(b.Since))
}

func (l *Lease) ref() LeaseRef { return LeaseRef{Lease: l.ID, Range: l.Range, Epoch: l.Epoch} }

func (l *Lease) ownerKey() hostKey { return newHostKey(l.Owner, l.Incarnation) }

// foreignExpiry is how long a lease lives whose owner is another product's processor:
// what .NET's and Java's have by default. They renew each 17 s.
const foreignExpiry = time.Minute

// lifetime is for how long the lease must be seen unchanged before it may be
// acquired; least is the observer's own Expiry. One that was given up is free at once,
// unless another product gave it up that took it from a host of ours: that one may
// trust it for its Expiry, which began before.
func (l *Lease) lifetime(least time.Duration) time.Duration {
	switch {
	case l.Owner == "" && !l.takenOver:
		return 0
	case l.Expiry == 0:
		return max(least, foreignExpiry)
	}
	return max(least, l.Expiry)
}

// disown takes everything about the owner off the record but its name.
func (l *Lease) disown() {
	l.Previous = l.Owner
	l.Owner, l.Incarnation, l.Expiry, l.Handoff = "", "", 0, ""
}

// givenUpAs reports whether the record is what a host wrote last that gave the lease
// up: nobody's, and without anything another product leaves behind of an owner.
func (l *Lease) givenUpAs(last *Lease) bool {
	return l.ownerKey() == "" && !l.foreign && l.State == last.State && l.Handoff == last.Handoff && l.Continuation == last.Continuation
}

// position is where processing of the lease goes on.
func (l Lease) position() RangeToken {
	return RangeToken{Range: l.Range, Continuation: l.Continuation, Since: l.Since}
}

// replaceBy turns a live lease into a split one: children go on from its
// checkpoint, which is that of the last page handled, not of the last one read.
func (l *Lease) replaceBy(children []FeedRange) {
	l.State = LeaseSplit
	l.disown()
	l.Children = make([]RangeToken, len(children))
	for i, c := range children {
		l.Children[i] = RangeToken{Range: c, Continuation: l.Continuation, Since: l.Since}
	}
}

// child is what a split makes of one child, not stored yet.
func (l *Lease) child(c RangeToken, id string, now time.Time) Lease {
	child := Lease{
		ID: id, Version: 1, Token: c.Range.String(), Range: c.Range, Mode: modeIncremental,
		State: LeasePending, Parent: l.ID, Epoch: l.Epoch,
		Continuation: c.Continuation, Since: c.Since, LSN: l.LSN, ChangeTime: l.ChangeTime,
		Attempts: l.Attempts, Timestamp: now,
		Request: Request{Paused: l.Request.Paused},
	}
	if rewind := l.Request.Rewind; rewind != nil {
		child.Request.Rewind = &RangeToken{Range: c.Range, Continuation: rewind.Continuation, Since: rewind.Since}
	}
	return child
}
