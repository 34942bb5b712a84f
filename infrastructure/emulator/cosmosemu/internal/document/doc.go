// Package document reads the JSON documents that clients send. It checks them, extracts the
// values that the store needs (id, ttl, partition key), drops the properties that the store
// writes itself (_rid, _self, _etag, _ts, ...), and keeps every other byte unchanged.
//
// One pass over the text does all of this. Nothing is decoded and encoded again, so a document
// is stored and served in the client's own spelling.
//
// The package is pure: no I/O, no goroutines, no shared state.
package document
