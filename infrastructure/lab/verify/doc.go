// Package verify checks the results of a run of the whole system against the promises
// of the outbox. Tests of every kind share it, and feedbox-dev offers it as a command.
//
// It knows nothing of Cosmos DB, Service Bus or HTTP: a [Run] holds the answers that
// clients got, what is in the store and what a consumer received. [DecodeDocument] reads
// stored documents into it, wherever they come from. The package only reads, so all of
// it is safe for concurrent use.
package verify
