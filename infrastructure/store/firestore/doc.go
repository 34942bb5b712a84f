// Package firestore keeps the outbox in Firestore in Native mode: rows (package recordstore has the
// unit of work and readers), the change feed of the events, the relay's leases and parked
// events. A database is made ready by deploying firestore.indexes.json, which has the indexes
// and the TTL policies.
//
// # A commit
//
// The aggregate, its events, the note about the request and the audit entry are the writes of
// one Commit request, each under its condition: that nothing is there, or that the time of its
// last change is what was read. Google's client is kept from sending a commit again by itself,
// since a second one would find its own first. Firestore takes 500 writes, 10 MiB, and 1 MiB
// for each document; more is refused before it is sent.
//
// # The feed
//
// What orders the events is the time of their commits, which Firestore keeps as the create time
// of a document: commits are visible in this order, and a read sees all of them up to some
// time. But no query can ask for it. What an index can have is the time of the request (a
// server timestamp), and that is earlier than the commit, by milliseconds as a rule and by
// seconds at times, has milliseconds only, and may come in another order:
//
//	event       a    b    c
//	at          1    2    3      the request, indexed
//	committed   9    4    5      the order of the feed: b c a
//	                   ▲
//	                   └ read here, from at=3 on, one would never see a
//
// So the index finds candidates, and the create time decides. For each event
//
//	commit - window < at <= commit + slack
//
// window, 30 s, is three times the deadline that a commit carries with it to the service
// (commitLimit); slack, 1 s, is for clocks of the service that differ. A position is the time
// of a commit: what was committed up to it was shown. One search:
//
//	count      how many carry the time upTo-window or a later one?
//	   │       The reply has its read time R: all that was committed up to R was counted, and
//	   │       nothing else. As many as are known: nothing is new.
//	   ▼
//	read at R  from the last known on; all from upTo-window on if the number says that one
//	   │       was committed late
//	   ▼
//	upTo = R   what was committed up to R is known; show it in the order of commits
//
// All rests on what a read time is: Firestore gives commits times by TrueTime, and a read at R
// sees every commit up to R, whatever is still on its way. So no commit can appear behind a
// position. A search that is far behind ends early, where nothing it has not read can precede
// what it shows. An event is shown once and no commit is cut.
//
// What it costs: a search that finds nothing counts, one read for each 1,000 events of the
// last 30 s, at least one; one that finds something reads that, and the last known again. How
// often there is a search say FEEDBOX_RELAY_POLL_MIN and _MAX.
//
// Whoever writes events without this package must keep the rule: set at to the server's
// timestamp, and give each commit a deadline below the window. And nobody may delete an event
// within the window: with another that is committed late, the number would be as before. Order per key: a unit of work
// reads the aggregate before its commit, which requires that it is unchanged, so of two that
// follow each other the second is committed later.
//
// LSNs are microseconds, so they do not count transactions (changefeed.Sparse).
//
// # Ranges
//
// A key lies at a hash, and in one of 16 slots by its first bits. Events carry their slot: the
// index is (slot, at), and the index of at alone is off, since one place that all new events go
// to would take 500 writes a second. A range is some slots.
//
// # What expires
//
// Documents carry expireAt, and a TTL policy of Firestore removes them, usually within a day.
// Nothing is removed by this package; until it is, what has expired counts as gone. Without
// the policy events stay and are paid for: feedbox doctor tells. What may come again leaves a
// tombstone.
//
// # The emulator
//
// Google's emulator keeps its data in memory, needs no indexes, removes nothing, takes no
// message above 4 MiB and allows more than 500 writes. Each query reads and sorts the whole
// collection, for each value of an IN once: one of the feed took 242 ms with 1,000 events and
// 1,011 ms with 30,000. Keep it to some thousand events.
//
// It has no TrueTime: it gives a commit its time first and shows it afterwards. A read may miss
// a commit below its read time, or half of one, and show a later one, whether it is a plain
// one, in a read-only transaction or at a given time. Under load this was seen in one of some
// hundred reads and for up to 21 ms; never of a commit that was acknowledged before the read.
// So on the emulator the feed shows what is a second old (settling), and a busy machine that
// needs longer to show a commit may still make it miss one.
//
// Nothing here starts a goroutine.
package firestore
