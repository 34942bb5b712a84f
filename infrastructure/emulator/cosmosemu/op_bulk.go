package cosmosemu

import (
	"errors"
	"net/http"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// executeBulk answers a batch without the atomic header. Its operations are independent and
// may be on any logical partitions of one physical partition. The answer is 200 if all
// succeed, otherwise 207 with the status of each operation.
//
//   - Supports: the operations of executeBatch, each with a partition key of its own, and the
//     continue-on-error header. Without it the operations after a failed one get 424.
//   - Refuses: a range that was split or merged (410); a key of another range or an invalid
//     key fails only its operation (410, 400).
//   - Source: the bulk mode of the .NET SDK.
func executeBulk(x *request) (*reply, error) {
	c, err := x.container()
	if err != nil {
		return nil, err
	}
	operations, err := batchOperations(x.body)
	if err != nil {
		return nil, err
	}
	rng, err := c.Topology().Find(first(x.header, headerRangeID))
	if err != nil {
		return nil, err
	}
	if err := x.admit(c, *rng); err != nil {
		return nil, err
	}
	results := make([]batchResult, len(operations))
	var last uint64
	failed := false
	for i := range operations {
		if failed && !isTrue(x.header, headerBatchContinue) {
			results[i] = batchResult{status: http.StatusFailedDependency}
			continue
		}
		var lsn uint64
		results[i], lsn, err = bulkOne(x, c, rng, operations[i:i+1])
		if err != nil {
			return nil, err
		}
		last = max(last, lsn)
		failed = failed || results[i].status >= http.StatusBadRequest
	}
	a := batchReply(x, results)
	a.session = rangeToken(rng, last)
	return a, nil
}

// bulkOne executes the given single operation. The result contains its failure; the error
// is a failure of the emulator.
func bulkOne(x *request, c *store.Container, rng *store.Range, operation []batchOperation) (batchResult, uint64, error) {
	refused := func(err error) (batchResult, uint64, error) {
		e := asWire(err)
		if e.Status == http.StatusInternalServerError {
			return batchResult{}, 0, err
		}
		return batchResult{status: e.Status, sub: e.SubStatus, charge: 1, message: e.Message}, 0, nil
	}
	if operation[0].key == "" {
		return refused(refuse(http.StatusBadRequest, "PartitionKey value must be supplied for this operation"))
	}
	key, err := parseKey(operation[0].key)
	if err != nil {
		return refused(err)
	}
	part, err := wholePartition(c, key)
	if err != nil {
		return refused(err)
	}
	if !rng.Bounds().Contains(part.EPK) {
		return refused(refuse(http.StatusGone, "The partition key does not belong to range %s", rng.ID).sub(subRangeGone))
	}
	b := newBatchRun(x, c, part, operation)
	if err := b.prepare(); err != nil {
		return refused(err)
	}
	commit, err := c.Update(part, b.run)
	if err != nil && !errors.Is(err, errBatchFailed) {
		return refused(err)
	}
	return b.results[0], commit.LSN, nil
}
