// Package cosmos is the transactional outbox in Azure Cosmos DB for NoSQL: it keeps aggregates
// and their events.
//
// One container holds both, partitioned by /partitionKey, the id of the aggregate. An aggregate
// and the events of a change are therefore in one logical partition, and one transactional batch
// writes them: all or nothing. The change feed of the container is the outbox. A container may
// hold aggregates of several kinds.
//
// Documents (document.go) are {id, partitionKey, type, data, ttl}. A document.Kind defines data;
// document.JSON makes one that uses encoding/json. The relay passes the data of an event to the
// broker byte for byte.
//
// The write side, from the outside in:
//
//   - NewUnitsOfWork returns the units of work (package unitofwork) of a container.
//   - A transaction reads aggregates, and at commit turns a change into documents.
//   - ContainerContext collects the documents of one partition key and saves them: a single one
//     by a point write, several by a transactional batch.
//
// A caller with documents but without aggregates uses Outbox and its Batch, which use a
// ContainerContext directly.
//
// Invariants:
//
//   - A replace or deletion always carries If-Match with the ETag of the document that was
//     changed. There is no last-writer-wins.
//   - Event creates come before all other operations of a batch, and event ids are never reused.
//     So a conflict on the id of an own event proves that an earlier attempt stored the same
//     batch and its answer was lost. This resolves an unknown outcome (see transaction.go).
//   - A stale replica may delay a command but decides nothing: writes are guarded by ETags, and
//     a read that would end in NotFound, in PreconditionFailed or in "nothing to change" is
//     confirmed by the primary.
//
// Package parked keeps parked events. An event that could not be parked is refused at the commit
// (limits.go).
//
// The read side is Reader, Pager and AuditReader. It needs no unit of work.
//
// Errors leave this package as faults (internal/store). The package starts no goroutines.
// UnitsOfWork, Outbox and the readers are safe for concurrent use; a unit of work and a Batch
// serve one goroutine.
//
// Sources: the REST reference of Cosmos DB (documents, transactional batch, query, status codes)
// and the azcosmos v1.5.0 sources.
package cosmos
