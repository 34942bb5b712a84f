// Package document reads the JSON documents clients send: it checks them, takes
// out what the store needs (id, ttl, partition key) and what the store itself
// writes (_rid, _self, _etag, _ts, ...), and keeps every other byte as it came.
//
// One pass over the text does all of it; nothing is decoded and encoded again,
// so a document is stored and served in the client's own spelling.
//
// The package is pure: no I/O, no goroutines, no shared state.
package document
