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
// so its id is higher.
//
// We do not use logical decoding: a replication slot keeps the WAL while a relay is down and fills
// the disk of the database that everything depends on. A slot has one reader, so hosts could not
// share ranges. And it requires wal_level=logical and a role with the replication right.
//
// Cost: three indexes of the events (the feed's, hash with id, and the expiry). Each poll descends
// the feed's index once and skips the entries of other ranges without reading their rows. And one open
// transaction anywhere on the server, if it has written anything, holds back all events.
// Feed.Held returns for how long, the log warns after 30 s, and feedbox doctor names the
// transaction. Transaction ids belong to one server, so Verify refuses events that were copied to
// another one.
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
