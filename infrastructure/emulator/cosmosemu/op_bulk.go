package cosmosemu

import (
	"errors"
	"net/http"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// executeBulk answers a batch that is not atomic: operations on any logical
// partitions of one physical partition, each with its own key and for itself.
//
// 200 if all succeed, else 207 with the status of each. Unless the request goes on
// after errors, the operations behind a failed one are not executed: 424. A key that
// belongs to another range makes its operation 410, as after a split.
func executeBulk(x *request) (*reply, error) {
	c, err := x.container()
	if err != nil {
		return nil, err
	}
	operations, err := x.batchOperations()
	if err != nil {
		return nil, err
	}
	rng, err := c.Topology().Find(first(x.header, headerRangeID))
	if err != nil {
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
		results[i], lsn, err = x.bulkOne(c, rng, operations[i:i+1])
		if err != nil {
			return nil, err
		}
		last = max(last, lsn)
		failed = failed || results[i].status >= http.StatusBadRequest
	}
	a := x.batchReply(results)
	a.session = sessionToken(rng.ID, last)
	return a, nil
}

// bulkOne executes the one operation given. Its failure is in the result; the error
// is one of the emulator.
func (x *request) bulkOne(c *store.Container, rng *store.Range, operation []batchOperation) (batchResult, uint64, error) {
	refused := func(err error) (batchResult, uint64, error) {
		e := asWire(err)
		if e.Status == http.StatusInternalServerError {
			return batchResult{}, 0, err
		}
		return batchResult{status: e.Status, sub: e.SubStatus, charge: 1, message: e.Message}, 0, nil
	}
	part, err := bulkPartition(c, operation[0].key)
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

func bulkPartition(c *store.Container, text string) (*store.Partition, error) {
	if text == "" {
		return nil, refuse(http.StatusBadRequest, "PartitionKey value must be supplied for this operation")
	}
	key, err := epk.ParseHeader(text)
	if err != nil {
		return nil, err
	}
	if len(key) == 0 {
		key = epk.Key{epk.Undefined()}
	}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	return wholePartition(c, key)
}
