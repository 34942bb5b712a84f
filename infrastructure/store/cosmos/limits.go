package cosmos

import (
	"fmt"

	"feedbox/domain/fault"
	"feedbox/infrastructure/store/internal/jsontext"
)

// The limits of a transactional batch (service limits, "Per-request limits").
const (
	maxBatchOperations = 100
	maxBatchBytes      = 2 << 20
)

// checkLimits refuses operations that exceed the limits of the service, before they are sent.
func checkLimits(ops []operation) error {
	if len(ops) > maxBatchOperations {
		return fault.New(fault.TooLarge, "too_many_operations",
			fmt.Sprintf("the change needs %d operations, one transaction takes %d", len(ops), maxBatchOperations))
	}
	if size := requestSize(ops); size > maxBatchBytes {
		return fault.New(fault.TooLarge, "transaction_too_large",
			fmt.Sprintf("the change is %d bytes long, one transaction takes %d", size, maxBatchBytes))
	}
	return nil
}

// requestSize returns the length of the request body in bytes: of the document for a point
// write, of the array of operations for a batch (REST reference, transactional batch; azcosmos
// cosmos_transactional_batch.go).
func requestSize(ops []operation) int {
	if len(ops) == 1 {
		return len(ops[0].body)
	}
	size := len("[]") + len(ops) - 1 // the commas between
	for _, op := range ops {
		switch op.verb {
		case verbCreate:
			size += len(`{"operationType":"Create","resourceBody":}`) + len(op.body)
		case verbReplace:
			size += len(`{"operationType":"Replace","ifMatch":,"id":"","resourceBody":}`) + jsontext.Length(string(op.object.ETag)) + len(op.object.ID) + len(op.body)
		case verbDelete:
			size += len(`{"operationType":"Delete","ifMatch":,"id":""}`) + jsontext.Length(string(op.object.ETag)) + len(op.object.ID)
		}
	}
	return size
}
