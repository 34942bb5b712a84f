package cosmos

import (
	"fmt"

	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos/internal/store"
	"feedbox/infrastructure/store/internal/jsontext"
)

const (
	// maxBatchOperations limits a transactional batch (service limits, "Per-request limits").
	maxBatchOperations = 100
	// maxEventBytes limits the document of an event, so that the relay can park it if the broker
	// refuses it. Otherwise it could neither be sent nor parked, and would stop its key for ever.
	maxEventBytes = store.MaxBytes - store.ParkReserve
)

// checkLimits refuses operations that exceed the limits of the service, before they are sent.
func checkLimits(ops []operation) error {
	if len(ops) > maxBatchOperations {
		return fault.New(fault.TooLarge, "too_many_operations",
			fmt.Sprintf("the change needs %d operations, one transaction takes %d", len(ops), maxBatchOperations))
	}
	if size := requestSize(ops); size > store.MaxBytes {
		return fault.New(fault.TooLarge, "transaction_too_large",
			fmt.Sprintf("the change is %d bytes long, one transaction takes %d", size, store.MaxBytes))
	}
	for _, op := range ops {
		if op.isEvent() && len(op.body) > maxEventBytes {
			return fault.New(fault.TooLarge, "event_too_large",
				fmt.Sprintf("event %s is %d bytes long, and at most %d can be parked if the broker refuses it: store large data elsewhere and refer to it in the event",
					op.object.ID, len(op.body), maxEventBytes))
		}
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
