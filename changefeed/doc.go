// Package changefeed is a change feed processor: it spreads the feed ranges of a
// container over any number of hosts by leases kept in a store, and hands every
// change to a handler.
//
// The package knows neither Azure nor what the documents mean. Package
// cosmosfeed adapts Azure Cosmos DB, package memfeed and memstore are a container
// and a lease store in memory, package leasetest is what a lease store must pass.
//
//	handler := changefeed.Each(func(ctx context.Context, change changefeed.Item) error {
//		return nil // done; Refuse(err): the document is at fault; any other error: it waits
//	})
//	p, err := changefeed.New(feed, leases, handler, &changefeed.Options{Processor: "orders"})
//	err = p.Run(ctx) // blocks; nil once ctx ended and everything is drained
//
// Start as many hosts as you like with the same Options.Processor. README.md has a
// program that runs; what follows is the contract, then the protocol.
//
// # The guarantee
//
//   - Every change is delivered at least once: a checkpoint is written only
//     behind changes that the handler said are done, or that the poison policy
//     dealt with. (Latest-version feed: a version that was replaced before it was
//     read is not a change any more.)
//   - The changes of one key are first delivered in feed order, by one handler
//     call at a time, on any number of hosts and lanes, across crashes, hand-offs,
//     splits and merges.
//   - A change is delivered again after a crash, a lost lease or a drain that ran
//     out of time, if it lies behind the last checkpoint: at most what was handled
//     within Options.CheckpointEvery plus what was in hand. Balancing, draining
//     and splitting redeliver nothing.
//   - No host begins a delivery once another may have begun one for the same
//     range. The one exception no lease can exclude is a process that is stopped
//     between that decision and what the handler sends, and wakes after its lease
//     was taken: a zombie. Such a handler finds its context ended; what reaches the
//     destination late anyway must be dropped there, by id or by Batch.Epoch. It
//     may be a version of a document its successor never saw, and has no order.
//
// # A lease
//
//	               create
//	           ┌───────────▶ PENDING ──────────────┐ complete: activate
//	           │            (owned by nobody)      ▼
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
// Every arrow is one conditional write of one record. Records have the format of
// the .NET SDK's processor; what it has no place for is in "properties". INTEROP.md
// says what working beside that one means.
//
// # The trust window
//
//	owner     ├─ write begins ────────────────────────────────┤ fence
//	          t                                               t + Expiry - Margin
//	store         ▲ new ETag at some time after t
//	observer          ├─ first sees that ETag ────────────────────────┤ may acquire
//	                  t' > t                                          t' + Expiry
//
// The owner trusts its lease from the beginning of its last successful write, on
// its own monotonic clock; an observer counts from when it first saw the ETag, on
// its own. Neither compares anything with another's clock, and whatever delays a
// message makes the observer later, never earlier. Margin is for clocks that run
// at different speeds. When the fence passes, the context of every handler call
// ends and no call is begun. The observer's claim is conditional on the ETag it
// saw, so that a stale listing can only make it fail.
//
// A machine that is suspended stops its monotonic clock, not the world. An owner
// whose wall clock is ahead of the write's beginning by the window or more is
// therefore in doubt: it ends its handlers' calls and renews before it delivers
// anything. It wakes knowing, and a clock set forward costs no more than that.
//
// # Splits
//
// A read that meets several physical ranges is not delivered. The worker finishes
// the pages it has begun, drops what was read ahead, and
//
//  1. retires the lease: one write makes it SPLIT, with the children's ranges and
//     its checkpoint, owned by nobody. Nothing will ever process it again.
//  2. anyone completes it: creates each child PENDING, unless it exists;
//     writes the parent once more, which fails if it is not SPLIT any longer;
//     makes each PENDING child LIVE at the parent's checkpoint;
//     makes the parent DONE, and deletes it.
//
// A host that stops between any two steps leaves something the next one carries
// on. A host that sleeps in between finds its write refused: a child can only be
// deleted after its parent is gone, so the write of the parent in step 2 proves
// that no child was there before and is gone already. That a delete fails leaves
// a DONE record nobody heeds. Initialisation is the same protocol, with the
// record {prefix}.info as the parent of all first leases.
//
// After a merge of physical ranges the leases stay as they are; only then does a feed
// part the documents of one range between leases, by each document's own key.
//
// Leases must tile the scope, which is judged on their bounds alone. A gap seen
// twice is filled from the last position known of it; a lease that contains
// narrower ones is a parent that came back and is retired.
//
// # Inside a range
//
//	reader ─▶ window of pages ─▶ lanes, by hash of the key ─▶ handler
//	   ▲            │                         │
//	   └── room ────┴──── finished pages ◀────┘
//	                            │
//	                 low-water checkpoint ─▶ keeper ─▶ store
//
// A range that is caught up is read again once a lane is free: what is read while all
// of them work would only wait for them.
//
// # When a handler fails
//
// A handler says of each document that it is done, that it waits or that it is
// refused (Batch.Answer). What it does not answer for is not done; an error says why.
//
//	lane ─▶ handler ── done ─────────────────────────────▶ behind the checkpoint
//	           │                                                  ▲
//	           ├─ waits ──┐                                       │
//	           ├─ refused ┼─▶ key held, followers behind it       │
//	           └─ nothing ┘      │  due: ─▶ handler again ── done ┤
//	                             │                                │
//	                             └─ refused MaxAttempts times,    │
//	                                or waiting for WaitLimit ─▶ Options.Poison
//
// Only the key is held: the other keys go on, and their pages keep no memory behind
// the one that is not done. What is done is not handed over again while the host owns
// the range. Only refusals are counted, in the lease. A call that only fails may be the
// fault of any of its documents, or of what the handler depends on: one is tried alone
// then, with growing pauses while nothing is handled, and twice as many after each
// success. A document that waits although others are handled goes to Options.DeadLetter
// after Options.WaitLimit, or when what waits fills the range.
//
// # Balancing
//
// Each host lists all records, at most every Options.Acquire, and computes the
// same pure plan: hosts short of their share claim free leases, hosts with more
// pass theirs on by name. Nothing is taken from a live owner, so that no work is
// torn off and each lease moves at most once. A host that owns nothing and is due
// something writes a heartbeat, so that it counts; one that is due nothing, because
// there are more hosts than leases, only looks, and says rarely that it is there.
//
// A host that leaves says so, works on until the others look often, and then gives
// its leases up: each is nobody's for less than a second. See drain.
//
// # Rooms
//
// The files are in rooms, and what one declares is used in its room and above
// (tests/arch holds the list):
//
//	process    Run: look at all leases, decide, acquire, pass on, drain; the operator
//	worker     one owned lease: sessions, stop, pause, rewind, release, calls of Own
//	delivery   reader, window, lanes
//	ownership  the keeper of a lease record, the fence, the split protocol
//	plan       pure: balancing, tiling, children, records and their documents
//	contract   what the package asks of others and tells them
//
// # Goroutines
//
//	Run             the cycle: list, initialise, complete splits, check the tiling, balance
//	 └ worker       per owned lease: sessions, stop, pause, rewind, release
//	    ├ keeper    the only writer of the lease record while it is owned
//	    ├ reader    reads ahead while the window has room
//	    └ lane      up to Options.Lanes, each only while it has work
//
// Each waits for those below it; Run returns when all have ended.
package changefeed
