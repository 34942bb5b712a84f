// Package explorer shows what the emulators hold, for a person with a browser: sections of
// package page. feedbox-dev alone links it.
//
//   - Database: databases, containers, physical partitions, documents, queries with pages
//     and charge, the change feed as it comes.
//   - Broker: topics, subscriptions, queues, their sessions and messages, dead letters.
//   - Weather: the faults of both emulators as switches that show what is on.
//
// It reads and writes through the vendor's SDKs, as an application does, under a user agent
// of its own, which the weather spares; splitting, merging, clocks and faults are calls of
// the emulators. Every list is paged or bounded. It starts no goroutine.
package explorer
