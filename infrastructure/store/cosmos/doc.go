// Package cosmos keeps aggregates and their events in Azure Cosmos DB for NoSQL: the
// transactional outbox.
//
// One container holds both, partitioned by /partitionKey, which is the aggregate's
// id. An aggregate and the events of a change are therefore in one logical
// partition and are written by one transactional batch: all or nothing. The
// change feed of that container is the outbox. It may hold aggregates of several kinds.
//
// Documents (document.go) are {id, partitionKey, type, data, ttl}. A Kind says what is in
// data; JSON makes one with encoding/json.
// The relay passes the data of an event to the broker byte for byte.
//
// The write side, from the outside in:
//
//   - UnitsOfWork begins a UnitOfWork per command. It implements the ports of
//     application/command.
//   - UnitOfWork reads an aggregate, and at commit puts its pending events into the
//     transaction, through the mediator if there is one.
//   - ContainerContext collects the documents of one partition key and saves
//     them: one as a point write, several as a transactional batch.
//
// Whoever has documents and no aggregates begins at the last step: Outbox and its Batch.
//
// Invariants:
//
//   - A replace or deletion always carries If-Match with the ETag of the document the
//     change was made to. There is no last-writer-wins.
//   - Event creates come before all other operations of a batch. Event ids are
//     never used twice. So a conflict on the id of an own event proves that the
//     same batch was stored by an earlier attempt whose answer was lost: that is
//     how an ambiguous outcome is resolved (see transaction.go).
//   - A stale replica may delay a command but decides nothing: what is written is
//     guarded by its ETag, and a read that would end in NotFound, in
//     PreconditionFailed or in "nothing to change" is confirmed by the primary.
//
// Parked events are another subject: package parked beside this one.
//
// The read side is Reader, Pager and AuditReader. It needs no unit of work.
//
// Errors leave this package as faults (internal/store). The package starts no
// goroutines. UnitsOfWork, Outbox and the readers are safe for concurrent use; a
// UnitOfWork, a Batch and what hangs on them serve one goroutine.
//
// Sources: the REST reference of Cosmos DB (documents, transactional batch,
// query, status codes) and the azcosmos v1.5.0 sources.
package cosmos
