// Package verify checks what a run of the whole system left behind against the
// promises of the outbox. Tests of every kind share it, and feedbox-dev offers it
// as a command.
//
// It knows nothing of Cosmos DB, Service Bus or HTTP: a [Run] is what clients were
// told, what the store holds and what a consumer received. [DecodeDocument] reads the
// stored documents into it, however they were got. All is safe for concurrent use, as
// it only reads.
package verify
