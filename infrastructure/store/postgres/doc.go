// Package postgres keeps the outbox in PostgreSQL 13 or later: records (package recordstore has
// the units of work and readers), the change feed of the events, the relay's leases and parked
// events.
//
//	db, err := postgres.Open("postgres://...", nil)
//	err = db.Migrate(ctx) // or migrate in another process: Verify compares the versions
//	work, err := recordstore.NewUnitsOfWork(postgres.Records{DB: db}, kind, nil, nil)
//	feed, err := postgres.NewFeed(db, &postgres.FeedOptions{Hold: 250 * time.Millisecond})
//
// # A commit
//
// One SQL statement writes the aggregate, its events, the note about the request and the audit
// entry. So they are one transaction and one round trip. The version of the aggregate serves as
// its ETag.
//
// # The feed
//
// Events are ordered by the id of the transaction that stored them (xid), not by a number from a
// sequence. A sequence is incremented before the commit, so a reader that uses it misses a
// transaction that began first and commits last.
//
//	xid    1    2    3    4    5    6
//	      done done open done done open
//	                ▲
//	                └ horizon: pg_snapshot_xmin(pg_current_snapshot()), the oldest open one
//	      ─────────▶│
//	      delivered │ held: 4 and 5 are committed, but 3 may still store something
//
// All transactions below the horizon have ended: the statement that asked for the horizon sees
// everything they have stored. A position is the id of a transaction that stored an event, and
// everything up to it was delivered. A position is never the horizon itself, because a server that
// crashed reuses ids that its log does not contain. Ids up to a commit that was seen are in the
// log (synchronous_commit is on) and are never reused. A transaction that commits late delays
// later ones and is never missed.
//
// A page has a limit of events and one of bytes (4 MB). A transaction that does not fit is continued
// on the next page, at a position with the hash of the last key. Pages never separate the events that
// one transaction has for one key.
//
// Order per key: a unit of work reads the version of the aggregate before its one statement gets
// an id. If two follow each other on one aggregate, the second has read the commit of the first,
// so its id is higher. In transactions of adopters it need not be; see the next section.
//
// We do not use logical decoding: a replication slot keeps the WAL while a relay is down and fills
// the disk of the database that everything depends on. A slot has one reader, so hosts could not
// share ranges. And it requires wal_level=logical and a role with the replication right.
//
// Cost: three indexes of the events (the feed's, hash with id, and the expiry). Each poll descends
// the feed's index once and skips the entries of other ranges without reading their rows. And one open
// transaction anywhere on the server, if it has written anything, holds back all events.
// Feed.Held returns for how long, the log warns after 30 s, and feedbox doctor names the
// transaction. Transaction ids belong to one server, so Verify refuses events and leases that were
// copied to another one.
//
// We do not use NOTIFY: it takes one server-wide lock at each commit, which prevents group
// commit. A read that finds nothing polls again until FeedOptions.Hold has passed: 1 ms after
// events were found, then less often, up to every 50 ms. A process reads several ranges. Those
// that are read to their end share these polls:
//
//	range A ──read──▶ poll alone ──nothing──▶ wait ─┐            ┌─▶ page of A
//	range B ──read──────────(at its end before)─────┤  one poll  ├─▶ page of B
//	range C ──read──────────────────────────────────┤  for all   ├─▶ (nothing) wait again
//	                                                └────────────┘
//
// A poll starts after the position that every waiting reader has already seen as empty. If its
// result was cut at the limit, it is not used, and each reader polls alone. A reader whose hold is
// over also polls alone.
//
// # Events in transactions of adopters
//
// Emit, EmitSQL and the SQL function emit store events in a transaction of the caller, beside its
// own tables. A program in another language calls the function:
//
//	SELECT feedbox.emit('order-7', 'OrderPaid', '{"amount": 120}');
//
// Such a transaction can have its id long before it emits, so ids alone give no order:
//
//	xid 5  ──BEGIN──INSERT──────────────────emit k──COMMIT     event 2 of key k
//	xid 9          ──BEGIN──emit k──COMMIT                     event 1 of key k
//
// So the table keys has a row for each key, its head, with the sequence and the position of its
// last event. emit increments the sequence, which locks the head until the transaction ends. The
// position of the event in the feed (column events.xid) is the higher one of two ids: that of its
// transaction and the position of the key's event before. Above, both events have position 9.
//
//	            ┌───────── another transaction of the key ends ◀──────┐
//	            ▼                                                     │
//	emit ─▶ [waits for the head] ─▶ [holds the head] ─────────────────┤
//	         has its xid             sequence = head + 1              │
//	                                 position = max(xid, head)        │
//	                                    │ commit      │ abort,        │
//	                                    ▼             ▼ savepoint     │
//	                                 [stored]      [as before] ───────┘
//	                                    │ horizon > position
//	                                    ▼
//	                                 [read], by position and sequence
//
// Proof. Let x be the id of the transaction of an event, p its position, and h a horizon.
//
//   - No loss: p >= x. While the transaction is open, h <= x <= p, and a read stops below h. After a
//     read up to h, an event that becomes visible has x >= h, so p >= h: the position of the reader
//     is lower.
//   - Order: the lock on the head gives the committed events of a key the order of their sequences.
//     Along it p never decreases. Events with the same p have the same hash, so no page separates
//     them, and the relay sends events of one LSN by sequence (they have no ordinal). All of them
//     become readable at once, because p < h means that every transaction up to p has ended.
//   - Progress: p is an id that was given out, so h exceeds it once the transactions up to p have
//     ended. A head never delays an event longer than its transactions would.
//   - Crash: p is the id of a transaction that has committed, this one or an earlier one of the
//     key. Its commit is in the log on disk before a reader sees the event, so p is never reused.
//     emit sets synchronous_commit to on for that; a stronger remote_apply stays.
//
// TestSimulatedTransactionsLoseNoEventAndKeepTheOrderOfKeys checks the same with 1,000 seeds. It
// also finds the faults of two other designs: the id of the transaction alone loses the order, and
// the end of a snapshot (pg_snapshot_xmax), taken with the lock, loses events, because a crashed
// server may give out that id again. We do not use a sequence of the database, because it is
// incremented before the commit, and do not cut pages only between transactions that do not overlap,
// because on a busy server there may never be such a point. Positions keep their form, so leases of
// earlier versions stay valid.
//
// Heads that were copied from another server can have positions above all ids of this one. emit
// recognizes them and begins again with the id of its transaction. A head is about 100 bytes and never
// expires. Aggregates have their own sequences: emit refuses the id of an aggregate as a key.
//
// Cost: an update of the head and an insert of the event, about twice the work of a plain INSERT. A
// key is locked until the commit, so transactions of one key follow each other, and two that emit the
// same keys in another order can deadlock. An open transaction of an adopter holds back the feed like
// any other.
//
// # Failover
//
// A promoted standby gives out ids again that its log does not contain:
//
//	log of the old primary   ── 45 ── 46 ── lease: 46 ─╳─ 47 ── 48 ── lease: 48
//	log of the standby       ── 45 ── 46 ── lease: 46 ── promoted ── 47' ── 48' ── 49'
//
// A relay that reads on at 48 would miss 47' and 48'. Therefore each statement of the feed returns the
// term of its server: system_identifier and timeline. The ETag of a lease contains it, too, so a lease
// that was read before the promotion cannot be written after it. The owner drops its position and
// reads the lease again. The position that the standby has, 46, is safe: the lease was written after
// those events, to the same log. Events of about the last second are sent again. What the relay knew
// of empty ranges is dropped as well.
//
// An address may lead to a standby for some seconds, when the old primary returns as one. A connection that refuses
// a write as a standby is not used again, so the next one follows the address.
//
// We do not compute a position from the ids at the promotion: no one may be there to record them, and
// prepared transactions from before it may still commit. We do not begin with the oldest event either,
// because each planned switchover would repeat all events.
//
// A position at or above the highest id of the server (pg_snapshot_xmax) is of another history. The
// range is held until an operator decides. See RELIABILITY.md for all cases.
//
// # Expiry
//
// Upkeep deletes in batches of 5,000, in the order of expiry. Events of one lifetime are stored in
// that order, so whole pages become free and are reused, and the table does not grow. Events that
// live longer delay nothing, because an index has the expiry. Partitions by time would save the
// deletes but require the right to create tables at run time.
//
// An expired event is deleted only if the checkpoints of all leases whose ranges contain it have
// passed it, whichever processor they belong to. So a relay that was down for longer than events
// live still sends all of them. Without leases nothing is deleted. Leases of a processor that is
// not used any more keep events for ever, until they are deleted.
//
// # Rights
//
// The role that migrates owns the schema: it needs CREATE on the database once, and runs feedbox
// migrate. API and relay have roles of their own, with the rights of Roles: the API cannot read leases,
// park or delete aggregates, and the relay cannot write events. feedbox doctor reports what a role lacks
// and what it has without need. With pg_monitor, it shows since when the transaction of another role is open.
//
// A role that only emits needs the rights of DB.EmitGrants: USAGE on the schema and EXECUTE on emit.
// The function has the rights of its owner and searches no schema of the caller.
//
// # Poolers
//
// The address may lead to a pooler, such as PgBouncer, also to one that gives each transaction another
// connection to the server. Nothing depends on a session: statements name the schema of their tables,
// no start-up parameter is sent, and each writing transaction sets synchronous_commit to on (a stronger
// remote_apply stays), whatever the default of the database. The first connection finds out whether
// there is a pooler; statements are prepared only if there is none.
//
// # Silence
//
// A server that does not answer keeps no caller waiting. Each statement has a limit (DBOptions.Timeout,
// 15 s), and so has the wait for a connection (10 s), after which the fault is Unavailable. The driver
// closes the connection of such a statement, and asks the server to cancel it on a new one. Connections
// that were idle for a second are pinged before use, for 2 s at most. Commits of the API have a shorter
// limit, unitofwork.Options.AttemptTimeout, and leases that of their keeper.
//
// The package starts no goroutines, except those of pgxpool, which DB.Close ends.
package postgres
