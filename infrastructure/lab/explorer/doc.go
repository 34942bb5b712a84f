// Package explorer shows the data of the emulators in a browser, as sections of package page.
// Only feedbox-dev uses it.
//
//   - Database: databases, containers, physical partitions, documents, queries with pages
//     and charge, the live change feed.
//   - Broker: topics, subscriptions, queues, their sessions and messages, dead letters.
//   - Faults: the faults of both emulators as switches.
//
// It reads and writes through the vendor's SDKs, as an application does. It has its own user
// agent, because faults must not affect its calls. Splits, merges, clocks and faults are calls
// of the emulators. Every list is paged or bounded. It starts no goroutine.
package explorer
