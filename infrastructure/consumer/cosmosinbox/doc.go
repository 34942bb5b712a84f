// Package cosmosinbox keeps a consumer's inbox in a Cosmos DB container, so that it
// outlives the process and is shared by all processes of a consumer.
//
// Each key has one document in its own partition:
//
//	{"id": <consumer>, "partitionKey": <key>, "type": "inbox",
//	 "sequence": 12, "aggregateVersion": 7, "eventId": "d6a5…", "ttl": 2592000}
//
// Several consumers may share a container; the data container will do, since the relay
// skips what is no event. A mark is written under the ETag of the one before, so that it
// never moves back, also if a holder that lost its session is late.
//
// The handler's own writes and the mark are separate: a crash between them delivers the
// event once more. A handler that must not do it twice writes through Inbox.Batch, which
// has the mark in it: both are stored or none, and the record that follows finds it there.
//
//	Batch ── mark in the way? ──yes──▶ Execute does nothing: handled before
//	  │ no
//	  ▼
//	Execute ──stored──▶ done                  (the record that follows writes nothing)
//	  │
//	  ├──mark refused: read it; it is of this event or a later one ──▶ done: handled before
//	  │                          any other ──▶ error: the event comes again
//	  └──no answer, or another operation refused ──▶ error: the event comes again
package cosmosinbox
