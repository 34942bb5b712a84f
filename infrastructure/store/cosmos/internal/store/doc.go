// Package store has the limits of Cosmos DB and interprets its replies: it maps a status to a
// fault, reports whether a failed write may have been applied, and merges session tokens.
package store

// Limits of the service ("Azure Cosmos DB service quotas", per-item and per-request limits).
const (
	// MaxBytes limits a document and a transactional batch.
	MaxBytes = 2 << 20
	// ParkReserve is the part of MaxBytes that an event leaves free, because the relay may have to
	// park it: in one transaction with its gate, with the members that the service and the relay
	// add, an operator's note and three errors. The key is stored once in each document; its
	// characters may need escapes of six bytes.
	ParkReserve = 64 << 10
)
