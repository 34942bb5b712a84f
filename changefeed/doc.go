// Package changefeed is a change feed processor: it spreads the feed ranges of a
// container over any number of hosts, with leases kept in a store, and passes every
// change to a handler.
//
// The package depends neither on Azure nor on the meaning of the documents. Package
// cosmosfeed adapts Azure Cosmos DB. Packages memfeed and memstore are a container and a
// lease store in memory. Package leasetest is the conformance suite of lease stores.
//
//	handler := changefeed.Each(func(ctx context.Context, change changefeed.Item) error {
//		return nil // done; Refuse(err): the document is at fault; any other error: it waits
//	})
//	p, err := changefeed.New(feed, leases, handler, &changefeed.Options{Processor: "orders"})
//	err = p.Run(ctx) // blocks; nil once ctx ended and everything is drained
//
// Start any number of hosts with the same Options.Processor. README.md has a complete
// program. This page describes the contract first, then the protocol.
//
// # The guarantee
//
//   - Every change is delivered at least once. A checkpoint moves only past changes that
//     the handler reported as done or that the poison policy handled. (The feed is the
//     latest-version feed: a version that was replaced before it was read is not a
//     change any more.)
//   - The changes of one key are first delivered in feed order, one handler call at a
//     time, on any number of hosts and lanes, across crashes, hand-offs, splits and
//     merges.
//   - A crash, a lost lease or a drain that runs out of time causes redelivery of changes
//     that the last write of the lease did not record as done: at most those handled within
//     Options.CheckpointEvery plus those in flight, also while a key is held. Balancing,
//     draining and splitting redeliver nothing.
//   - No host begins a delivery once another host may have begun one for the same range.
//     No lease can exclude one exception, the zombie: a process that is stopped between
//     its check of the lease and its send, and wakes after its lease was taken. The
//     handler's context has ended by then. Late sends that reach the destination anyway
//     must be dropped there, by id or by Batch.Epoch. A zombie may send a version that
//     its successor never saw, so its sends have no order.
//
// # Histories
//
// A position has a meaning only in the history of the container that it was read from. A
// container that is restored or created again, or loses writes in a failover, counts its
// changes again, and equal positions are then other changes.
//
//	Initialization, Operator.Restart ─▶ a new Lease.History ─▶ splits and repairs inherit it
//
//	The container is        noticed by                        then
//	created again           Source, once per Expiry, or       all workers stop, and a new run
//	                        ErrRecreated of a read            begins with new leases
//	restored, or has        a reply that ends before          AheadError, retried: the range is
//	lost writes             Lease.Reached                     held until Restart
//	failed over, with the   Page.Term differs from that of    the ownership ends, and the lease is
//	leases                  Record.Term                       read again, in a new history
//	on another server       the server in Page.Term           AheadError, held until Restart or Retry
//
// A store that keeps leases and documents in one log (Record.Term) needs no operator after a
// failover. A checkpoint was written to the log after the changes that it covers, so a server that
// has the checkpoint has the changes. Only positions in the memory of a host may be ahead of it.
// See term.go.
//
// A restored container that has grown past the old position before it is read again is not
// noticed. Restart its leases in any case.
//
// An ownership has one history: the owner releases a lease to be restarted, and the next
// acquisition applies the request.
//
// # A lease
//
//	               create
//	           ┌───────────▶ PENDING ──────────────┐ complete: activate
//	           │            (never owned)          ▼
//	parent ────┤                             ┌─── LIVE ◀──────────────────┐
//	is SPLIT   │               acquire       │  no owner                  │
//	           │         (epoch+1, If-Match) ▼                            │
//	           │                        LIVE, owned ── release, hand-off ─┤
//	           │                 renew ↻ checkpoint ↻                     │
//	           │                             │   └── ETag unchanged for ──┘
//	           │                      retire │        Expiry: gone
//	           │                             ▼
//	           │                           SPLIT ── complete ──▶ DONE ──▶ deleted
//	           └───────────────────────────┘
//
// Every arrow is one conditional write of one record. Records have the format of the
// .NET SDK's processor. Fields that this format lacks are in "properties". INTEROP.md
// describes running both on the same leases.
//
// # The trust window
//
//	owner     ├─ write begins ────────────────────────────────┤ fence
//	          t                                               t + Expiry - Margin
//	store         ▲ new ETag at some time after t
//	observer          ├─ first sees that ETag ────────────────────────┤ may acquire
//	                  t' > t                                          t' + Expiry
//
// The owner trusts its lease from the beginning of its last successful write, on its own
// monotonic clock. An observer counts from the moment it first saw the ETag, on its own
// clock. Neither compares its clock with another host's, because those differ. A delay of
// a message makes the observer later, never earlier. Margin covers clocks that run at
// different speeds. When the fence passes, the context of every handler call ends and no
// new call begins. The observer's claim is conditional on the ETag it saw, so a stale
// listing can only make the claim fail.
//
// A suspended machine stops its monotonic clock while other hosts continue. Therefore an
// owner also reads its wall clock. If that clock is ahead of the last write's beginning
// by the window or more, the lease is in doubt: the owner ends its handler calls and
// renews the lease before it delivers anything. So a host that wakes from a suspension
// notices it, and a wall clock that is set forward costs one renewal.
//
// # Splits
//
// A page read from several physical ranges is not delivered. The worker finishes the
// pages it has begun, drops the pages read ahead, and
//
//  1. retires the lease: one write makes it SPLIT and unowned, and records its checkpoint
//     and the children's ranges. A SPLIT lease is never processed again.
//  2. completes the split, which any host can do: it creates each child PENDING, unless
//     it exists; writes the parent once more, which fails if it is not SPLIT any longer;
//     makes each PENDING child LIVE at the parent's checkpoint; makes the parent DONE and
//     deletes it.
//
// If a host stops between two steps, the next host continues from there. If a host sleeps
// between two steps, its next write is refused: a child can only be deleted after its
// parent is gone, so a successful write of the parent in step 2 proves that no child has
// been created and deleted before. A failed delete leaves a DONE record, which every
// host ignores. Initialization is the same protocol; the record {prefix}.info is the
// parent of all first leases. If there are more than 32, the host that decided them creates them,
// and the others wait as long as the records change; see leaveInitialization.
//
// A merge of physical ranges leaves the leases as they are. Only then does a feed divide
// the documents of one range between leases, by each document's own key.
//
// Leases must tile the scope. The check uses their bounds alone. A gap that lasts for
// Expiry is filled from the last position known of it. A lease that contains narrower
// ones is a parent that reappeared; it is retired.
//
// # Inside a range
//
//	reader ─▶ window of pages ─▶ lanes, by hash of the key ─▶ handler
//	   ▲            │                         │
//	   └── room ────┴──── finished pages ◀────┘
//	                            │
//	          low-water checkpoint, ahead ─▶ keeper ─▶ store
//
// The progress of a range is its checkpoint and what is done ahead of it:
//
//	          checkpoint        k, from LSN 5              ahead (LSN 9)
//	──────────────┤──── 3 ──── 4 ──── 5 k ─── 6 ──── 7 k ──── 9 ├─── 10 ─── 11 ──▶
//	everything    │   done    done   held    done   held    done │ not done, in lanes,
//	is done       │                                              │ or not read
//
// The checkpoint is the page before the first change that is not done. It is correct for
// every reader, also of another product. Beside it the record has Lease.Ahead: the LSN up to
// which all pages have left the lanes, and the held keys with the LSN of their first change
// that is not done. A change up to that LSN is done unless its key is held and its LSN is not
// below the key's. Both are written together, as often as the checkpoint.
//
// A session skips what was done ahead of the checkpoint when it began. It keeps the former
// Ahead in the record until it has read past it. Skipped changes do not count as handled.
//
//	restart, crash   the record's Ahead is skipped; later changes are redelivered
//	hand-off, split  the same: the children inherit Ahead, and drop keys they do not have
//	merge            the same: a position of the feed is an LSN, so LSNs compare as
//	                 positions do. If LSNs decrease within a session, Ahead is dropped
//	rewind           Ahead is dropped
//	another product  Ahead is dropped if it moved the checkpoint: Ahead.Position proves that
//	                 checkpoint, history and Ahead belong together
//	manual handler   has no Ahead: its checkpoint alone counts
//
// A held key keeps a share of the range's memory. Later changes of the key are dropped and
// count as not done. When the others are done, another session begins at the checkpoint, and
// everything but that key is skipped. So one key stops neither the range nor its memory.
//
// The record lists some 500 held keys. If there are more, Ahead ends before the first key
// that is not listed, and reading stops 100 × ReadAheadItems changes later. If held documents
// fill ReadAheadItems, reading stops, too, as it should in an outage.
//
// A range whose feed does not reply moves to another host. It is reported, and so is each part
// of the scope that no host owns, about once a minute (Observer.RangeUnread); see silence.go.
//
// A range that is caught up is read again once a lane is free, because a page read while
// all lanes are busy would only wait for them. Reads that find nothing are limited for the whole host
// (Options.PollRate): hundreds of ranges that are acquired together take turns, because nothing tells a
// quiet range from one whose next change is near.
//
// # When a handler fails
//
// For each document a handler answers that it is done, waits, or is refused
// (Batch.Answer). A document without an answer is not done; the call's error is the
// reason.
//
//	lane ─▶ handler ── done ─────────────────────────────▶ checkpoint may pass
//	           │                                                  ▲
//	           ├─ waits ──┐                                       │
//	           ├─ refused ┼─▶ key held, with its later changes    │
//	           └─ nothing ┘      │  due: ─▶ handler again ── done ┤
//	                             │                                │
//	                             └─ refused MaxAttempts times,    │
//	                                or waiting for WaitLimit ─▶ Options.Poison
//
// Only that key is held. Other keys continue, and their finished pages do not stay in
// memory. Refusals are counted with the held document. The lease lists the counts of the
// first documents of keys, so that they survive a crash; they leave the list with their key.
// A failed call without a refusal may be the fault of
// any of its documents or of a dependency of the handler. Then one document is retried
// alone, with growing pauses while nothing is handled, and twice as many after each
// success. A document that waits while others are handled goes to
// Options.DeadLetter after Options.WaitLimit, or earlier if held documents fill the
// range's memory. Time in which a document waits for an event outside itself (WaitUntil)
// does not count.
//
// # Balancing
//
// Each host lists all records, usually every Options.Acquire, and computes the same pure
// plan: hosts below their share claim free leases, hosts above it hand leases to a named
// host. No lease is taken from a live owner, so no work is interrupted and each lease
// moves at most once. A host that owns nothing and is due a lease writes a heartbeat, so
// that the plan counts it. A spare host, which is due nothing because there are more hosts
// than leases, only polls the leases and writes one record now and then.
//
// After a change, hosts list every Options.AcquireFast for a minute. Each listing contains every
// lease, so a fleet that would list more than a million records a second lists less often, but at
// least every Options.Acquire.
//
// A leaving host announces it, continues to work until the other hosts poll often, and
// then releases its leases. Each is unowned for less than a second, or for about as long as the
// time between two listings in a large fleet. See drain.
//
// # Rooms
//
// The files are in layers called rooms. A declaration is used in its own room and in the
// rooms above (tests/arch holds the list):
//
//	process    Run: list all leases, decide, acquire, hand off, drain; the operator
//	worker     one owned lease: sessions, stop, pause, rewind, release, calls of Own
//	delivery   reader, window, lanes
//	ownership  the keeper of a lease record, the fence, the split protocol
//	plan       pure: balancing, tiling, children, records and their documents
//	contract   the public API, and small helpers
//
// # Goroutines
//
//	Run             the cycle: list, initialize, complete splits, check the tiling, balance
//	 └ worker       per owned lease: sessions, stop, pause, rewind, release
//	    ├ keeper    the only writer of the lease record while it is owned
//	    ├ reader    reads ahead while the window has room
//	    └ lane      up to Options.Lanes, each only while it has work
//
// Each goroutine waits for those below it. Run returns when all have ended.
package changefeed
