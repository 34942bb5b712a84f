package changefeed

import (
	"encoding/json"
	"time"
)

// LeaseState is the state of a lease record. doc.go draws the state machine.
type LeaseState string

const (
	// LeaseLive can be owned and processed.
	LeaseLive LeaseState = ""
	// LeasePending was created by a split that may not be complete. It is never owned;
	// completing the split makes it live.
	LeasePending LeaseState = "pending"
	// LeaseSplit was replaced by its children, which may not all exist yet. It is never
	// processed again.
	LeaseSplit LeaseState = "split"
	// LeaseDone was replaced and all its children are live. It may be deleted.
	LeaseDone LeaseState = "done"
)

// Health is the state of a range for operators.
type Health string

const (
	// Healthy means that the last delivery succeeded, or that there was none yet.
	Healthy Health = ""
	// Unread means that the feed does not reply to the owner's reads, or refuses them.
	Unread Health = "unread"
	// Retrying means that deliveries fail and are retried.
	Retrying Health = "retrying"
	// Stopped means that the poison policy stopped the range until an operator acts.
	Stopped Health = "stopped"
)

// Lease is one lease record: the owner and the position of a feed range. Slices and maps in
// it are never changed in place, so that a copy is independent.
type Lease struct {
	ID   string
	ETag string
	// Version of the document format: 1 for a lease of an effective partition key range, 0
	// for a lease of a physical range from older .NET processors.
	Version int
	// Token is the lease token: min-max, or the physical range's id (version 0).
	Token string
	Range FeedRange
	// Owner is the host's name, empty if the lease is unowned.
	Owner string
	// Incarnation is the owner's random identity. It distinguishes two hosts of one name.
	Incarnation string
	// Epoch rises by one each time the lease is acquired: a fencing token.
	Epoch int64
	// Expiry is the owner's setting: the lifetime of its lease without a write. An observer
	// waits at least this long. See lifetime for owners that record none.
	Expiry time.Duration
	// History names the history of the container that the position belongs to. A restored or
	// recreated container has another history, in which equal positions are other changes.
	// Initialization chooses it, and Operator.Restart replaces it. It is empty in leases
	// written by other products and by earlier versions.
	History string
	// Continuation is the checkpoint. It is empty until the first one; then Since is the
	// start position.
	Continuation string
	Since        time.Time
	// LSN and ChangeTime are those of the last change before the checkpoint.
	LSN        int64
	ChangeTime int64
	// Reached is the highest end of the feed when the range was read up to it. A feed that ends
	// earlier has lost changes; see AheadError.
	Reached int64
	// Term is the Page.Term in which the range was read last; "" = unknown. Lost is set once the
	// feed ended before Reached in another term: the LSN at which it ended, or -1 if the position
	// belongs to another server. Nothing is read then until an operator rewinds, restarts or
	// retries the range.
	Term string
	Lost int64
	// Delivered is the LSN of the last transaction whose changes were all handled. It is after the checkpoint while an
	// earlier key is held. Handled counts the documents handled since the lease was
	// created. Both are as of the record's last write.
	Delivered int64
	Handled   int64
	// LastRead is when the range was last read, by its owner's wall clock. An owner that does not
	// read it, as in a pause, writes the lease, too.
	LastRead time.Time
	// Backlog is true from a first start or a rewind until the range was read to its end.
	// Events before that may have expired after they were sent.
	Backlog bool
	// Timestamp is the writer's wall clock. It is informational only.
	Timestamp time.Time
	// Mode of the feed; empty is the incremental (latest version) feed.
	Mode string

	State    LeaseState
	Parent   string       // id of the record this one was split from
	Children []RangeToken // replacements of this lease by a split
	Handoff  hostKey      // the host that may acquire a released lease first
	Previous string       // name of the owner before Owner; a free lease prefers a host of this name

	Health   Health
	Failures int       // consecutive failures of the delivery that is retried
	Error    string    // the last one
	Failing  time.Time // start of the failure
	// UnreadFor is for how long no owner could read the range, as of the last failure. It is a duration,
	// because the clocks of two owners are not compared.
	UnreadFor time.Duration
	Ahead     Ahead // what is done after the checkpoint

	Request Request // an operator's request to the owner

	// foreign means that another product wrote the record last. Then "properties" describe
	// the owner before it, and are not decoded. takenOver means that the other product took
	// the lease from an owner that may not know it yet.
	foreign, takenOver bool

	loaded string // Record.Term

	properties map[string]string          // members of properties this package does not know
	unknown    map[string]json.RawMessage // members of the document it does not know
}

// Request is a request of an operator to the current or next owner of a lease.
type Request struct {
	Paused  bool        // hold the lease but deliver nothing
	Release bool        // release the lease once
	Retry   bool        // reset attempts and resume a stopped range
	Rewind  *RangeToken // continue from this position
	// History is that of the position to rewind to. The next acquisition applies both, because
	// an ownership has one history.
	History string
}

func (r Request) equal(o Request) bool {
	a, b := r.Rewind, o.Rewind
	r.Rewind, o.Rewind = nil, nil
	return r == o && (a == b || a != nil && b != nil && a.Continuation == b.Continuation && a.Since.Equal(b.Since))
}

func (l *Lease) ref() LeaseRef {
	return LeaseRef{Lease: l.ID, Range: l.Range, Epoch: l.Epoch, History: l.History}
}

func (l *Lease) ownerKey() hostKey { return newHostKey(l.Owner, l.Incarnation) }

// foreignExpiry is the lifetime of a lease owned by another product's processor. It is a
// constant because their records do not contain it: the default of .NET's and Java's
// processors, which renew every 17 s.
const foreignExpiry = time.Minute

// lifetime returns how long the lease must be seen unchanged before it may be acquired;
// least is the observer's own Expiry. A released lease is free at once, except one that
// another product took from a host of this package and then released, because that host may
// not know it yet and may trust the lease for its own Expiry.
func (l *Lease) lifetime(least time.Duration) time.Duration {
	switch {
	case l.Owner == "" && !l.takenOver:
		return 0
	case l.Expiry == 0:
		return max(least, foreignExpiry)
	}
	return max(least, l.Expiry)
}

// disown removes everything about the owner from the record but its name.
func (l *Lease) disown() {
	l.Previous = l.Owner
	l.Owner, l.Incarnation, l.Expiry, l.Handoff = "", "", 0, ""
}

// releasedAs reports whether the record is last, the final write of a host that released
// the lease: unowned, and without anything that another product leaves behind.
func (l *Lease) releasedAs(last *Lease) bool {
	return l.ownerKey() == "" && !l.foreign && l.State == last.State && l.Handoff == last.Handoff && l.Continuation == last.Continuation
}

// position is the position from which processing of the lease continues.
func (l Lease) position() RangeToken {
	return RangeToken{Range: l.Range, Continuation: l.Continuation, Since: l.Since}
}

// replaceBy turns a live lease into a split one. Its children continue from its checkpoint,
// because pages that were only read ahead are dropped.
func (l *Lease) replaceBy(children []FeedRange) {
	l.State = LeaseSplit
	l.disown()
	l.Children = make([]RangeToken, len(children))
	for i, c := range children {
		l.Children[i] = RangeToken{Range: c, Continuation: l.Continuation, Since: l.Since}
	}
}

// child returns one child of a split, not stored yet.
func (l *Lease) child(c RangeToken, id string, now time.Time) Lease {
	return Lease{
		ID: id, Version: 1, Token: c.Range.String(), Range: c.Range, Mode: modeIncremental,
		State: LeasePending, Parent: l.ID, Epoch: l.Epoch, History: l.History,
		Continuation: c.Continuation, Since: c.Since, LSN: l.LSN, ChangeTime: l.ChangeTime, Reached: l.Reached, Lost: l.Lost,
		LastRead: l.LastRead, Backlog: l.Backlog,
		Ahead: l.Ahead, Timestamp: now, Request: l.request(c.Range),
	}
}

// request returns the operator's request for a part of the lease.
func (l *Lease) request(part FeedRange) Request {
	r := Request{Paused: l.Request.Paused, Retry: l.Request.Retry, History: l.Request.History}
	if rewind := l.Request.Rewind; rewind != nil {
		r.Rewind = &RangeToken{Range: part, Continuation: rewind.Continuation, Since: rewind.Since}
	}
	return r
}
