// Package recordstore is the part of a store that PostgreSQL and Firestore share. Both keep an
// aggregate, its events and its notes as separate records and change them in one commit. The
// package has the transaction of a unit of work, readers for queries and of stored events, and
// the key space of the feed. A store implements Store, which does one operation at a time and
// knows no kinds.
//
// The ETag of an aggregate is its version, because versions are never reused. There are no
// session tokens: a read sees every commit that was acknowledged before it.
//
// The package starts no goroutines.
package recordstore
