// Package postgres keeps the outbox in PostgreSQL 13 or later: units of work, readers, the
// change feed of the events, the relay's leases and parked events.
//
//	db, err := postgres.Open("postgres://...", nil)
//	err = db.Migrate(ctx) // or have it done elsewhere: Verify compares the versions
//	work, err := recordstore.NewUnitsOfWork(postgres.Rows{DB: db}, kind, nil, nil)
//	feed, err := postgres.NewFeed(db, &postgres.FeedOptions{Hold: 250 * time.Millisecond})
//
// # A commit
//
// The aggregate, its events, the note about the request and the audit entry are written by
// one SQL statement, so they are one transaction, and one round trip. The version of the
// aggregate stands in the place of an ETag. Package recordstore has what it has in
// common with other stores: the unit of work, readers, how a lost answer becomes certain.
//
// # The feed
//
// Reads are ordered by the id of the transaction that stored an event (xid), not by a
// number from a sequence: a sequence is counted up before the commit, and whoever reads by
// it misses a transaction that began first and commits last.
//
//	xid    1    2    3    4    5    6
//	      done done open done done open
//	                ▲
//	                └ horizon: pg_snapshot_xmin(pg_current_snapshot()), the oldest open one
//	      ─────────▶│
//	       shown    │ waits: 4 and 5 are committed, but 3 may still store something
//
// All transactions below the horizon have ended: what they have stored is seen by the
// statement that asked for the horizon. A position is the id of one that has stored an event:
// everything up to it was shown. It is never the horizon itself, because a server that
// crashed gives out ids again of which its log knows nothing; those up to a commit that was
// seen are in the log (with synchronous_commit on) and never come again. A transaction that
// commits late delays what comes behind it and is never missed, and a page never cuts a
// transaction.
//
// Order per key: a unit of work reads the aggregate's version, and only then its one
// statement takes an id. Of two that follow each other on one aggregate the second has read
// what the first committed, so its id is higher.
//
// Why not logical decoding: a replication slot keeps the WAL for a relay that is away, and
// fills the disk of the database that everything depends on; it has one reader, so ranges
// could not be shared; and it needs wal_level=logical and a role that may replicate.
//
// What it costs the database: two indexes of the events (the feed's, and hash with id); for
// each look one descent of the feed's index, which then passes over the entries of other
// ranges without reading their rows; and, the price of the order, that one
// transaction left open anywhere on the server, if it has written anything, holds all events
// back. Feed.Held tells for how long, the log warns after 30 s, and feedbox doctor names it.
// Transaction ids are of one server: Verify refuses events that were copied to another one.
//
// Nothing is notified: NOTIFY takes one lock of the whole server at each commit, which ends
// group commit. Reads that find nothing look again for a while before they say so
// (FeedOptions.Hold), 1 ms after events were found, then less often, up to 50 ms. A process
// reads several ranges; those that are read to their end share these looks:
//
//	range A ──read──▶ look alone ──nothing──▶ wait ─┐            ┌─▶ page of A
//	range B ──read──────────(at its end before)─────┤  one look  ├─▶ page of B
//	range C ──read──────────────────────────────────┤  for all   ├─▶ (nothing) wait again
//	                                                └─ who wait ─┘
//
// A look begins behind what all who wait know to be empty. One that was cut answers nobody:
// each looks alone then, and so does a reader whose hold is over.
//
// # What expires
//
// Upkeep deletes in batches of 5,000, events from the front of the feed: they lie in the
// order in which they were stored, so that whole pages become free and are used again,
// and the table does not grow beyond what lives. Partitions by time would save the deletes,
// and cost rights to create tables at run time.
//
// Nothing here starts a goroutine, but for those of pgxpool, which DB.Close ends.
package postgres
