// Package firestore keeps the outbox in Firestore in Native mode: records (package recordstore has
// the units of work and readers), the change feed of the events, the relay's leases and parked
// events. Deploy firestore.indexes.json before first use: it has the indexes and the TTL policies.
//
// # A commit
//
// The aggregate, its events, the note about the request and the audit entry are the writes of one
// Commit request. Each write has a condition: that there is no document, or that its update time
// is the one that was read. Google's client must not repeat a commit automatically, because the
// second one would fail on the writes of the first; we disable that. Firestore allows 500 writes
// and 10 MiB for a commit, and 1 MiB for a document; larger changes are refused before they are
// sent.
//
// # The feed
//
// Events are ordered by the time of their commits, which Firestore keeps as the create time of a
// document. Commits become visible in this order, and a read sees all of them up to some time. But
// a query can neither filter nor sort by it. An index can have the time of the request (a server
// timestamp). It is earlier than the commit, usually by milliseconds and at times by seconds, it
// has a resolution of milliseconds, and its order may differ:
//
//	event       a    b    c
//	at          1    2    3      the request, indexed
//	committed   9    4    5      the order of the feed: b c a
//	                   ▲
//	                   └ a reader that queried from at=3 here would never see a
//
// So the feed queries by server timestamp and orders by commit time. For each event
//
//	commit - window < at <= commit + slack
//
// window, 30 s, is three times the deadline that a commit carries to the service (commitLimit).
// slack, 1 s, allows for different clocks in the service. A position is the time of a commit, and
// everything that was committed up to it was delivered. One search:
//
//	count      number of events with a timestamp from upTo-window on?
//	   │       The reply has its read time R: it counts exactly the events committed up to R. If
//	   │       the number equals that of the known events, there are no new ones.
//	   ▼
//	read at R  from the last known timestamp on; if the number shows that an event was committed
//	   │       late, from upTo-window on
//	   ▼
//	upTo = R   all events committed up to R are known; deliver them in the order of commits
//
// This relies on the meaning of a read time: Firestore assigns commit times by TrueTime, and a
// read at R sees every commit up to R, whatever is still in flight. So no commit can appear before
// a position later. A search that lags far behind ends early, after 1,000 events or 8 MiB, at a point that
// no unread event can precede. An event is delivered once and no commit is split.
//
// Cost: a search without new events counts, which is one read for each 1,000 events of the last
// 30 s, at least one. A search with new events reads them and the last known one again.
// FEEDBOX_RELAY_POLL_MIN and _MAX set the frequency of searches.
//
// A writer that does not use this package must follow the same rules: set at to the server
// timestamp, and give each commit a deadline below the window. No one may delete an event within
// the window, because a late commit of another one would leave the number unchanged.
//
// Order per key: a unit of work reads the aggregate before its commit, which requires that it is
// unchanged, so of two that follow each other the second is committed later.
//
// LSNs are microseconds, so they do not count transactions (changefeed.Sparse).
//
// # Ranges
//
// A key has a hash, whose first bits are one of 16 slots. Events carry their slot, and the index is
// (slot, at). The single-field index of at is off, because all new events would be added at its
// end, which allows only 500 writes a second. A range is a set of slots.
//
// # Expiry
//
// Documents carry expireAt, and a TTL policy of Firestore deletes them, usually within a day. This
// package deletes nothing; an expired document counts as deleted. Without the policy, expired
// events stay and cost money: feedbox doctor reports that. An aggregate whose id may be used again
// leaves a tombstone.
//
// # The emulator
//
// Google's emulator keeps its data in memory, needs no indexes, deletes nothing, accepts no message
// above 4 MiB and allows more than 500 writes. Each query reads and sorts the whole collection,
// once for each value of an IN: one of the feed took 242 ms with 1,000 events and 1,011 ms with
// 30,000. Keep it to some thousand events.
//
// It has no TrueTime: it assigns a commit its time first and makes it visible afterwards. A read
// may miss a commit below its read time, or half of one, and return a later one, also in a
// read-only transaction or at a given time. Under load we saw this in one of some hundred reads
// and for up to 21 ms; never for a commit that was acknowledged before the read. So on the
// emulator the feed delivers events only when they are a second old (settling). A busy machine
// that needs longer to make a commit visible may still make the feed miss one.
//
// # Silence
//
// A call that receives no message for 15 s (Options.Timeout) fails, and so does a commit without a reply
// after 10 s. The fault is Unavailable. A silent connection is closed within 40 s (keepAlive). A reply
// that arrives slowly has no limit here; the processor limits a read of the feed.
//
// The package starts no goroutines.
package firestore
