// Package document says how aggregates and their events are stored, whatever the store: the
// kind of an aggregate with its codecs, the members that all events have, and the contract
// by which a relay reads events out of documents.
//
//	{"id", "partitionKey", "type": "domainEvent", "data": {..., "action", "sequence", ...}}
//
// JSON makes a kind of encoding/json. Nothing here does I/O; all is safe for concurrent use
// once made.
package document

// KeyMember is the member of a document that holds the key of its aggregate.
const KeyMember = "partitionKey"
