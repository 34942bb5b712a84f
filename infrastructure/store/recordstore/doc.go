// Package recordstore is what stores have in common that keep an aggregate, its events and the
// notes about it beside each other and change them in one go, as PostgreSQL and Firestore do:
// the unit of work, readers for queries and of stored events, and where keys lie in the feed. A
// store brings a Store, which does one thing at a time and knows nothing of kinds.
//
// The version of an aggregate is its ETag: it never comes back. There are no session tokens:
// a read sees every commit that was acknowledged before it. How a lost answer becomes
// certain: save.go.
//
// Nothing here starts a goroutine.
package recordstore
