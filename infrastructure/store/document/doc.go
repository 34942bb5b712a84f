// Package document defines the stored form of aggregates and their events, which is the same
// in every store: the kind of an aggregate with its codecs, the members that all events have,
// and the contract by which a relay decodes events from documents.
//
//	{"id", "partitionKey", "type": "domainEvent", "data": {..., "action", "sequence", "ordinal", ...}}
//
// The ordinal counts the events of one transaction from 1, in the order in which the caller or
// the aggregate recorded them. A feed returns the documents of a transaction in any order, so the
// relay sorts them by it.
//
// JSON makes a kind that uses encoding/json. The package does no I/O; its values are safe for
// concurrent use.
package document

// KeyMember is the member of a document that holds the key of its aggregate.
const KeyMember = "partitionKey"
