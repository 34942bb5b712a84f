package cosmosemu

import (
	"errors"
	"net/http"

	"feedbox/infrastructure/emulator/cosmosemu/internal/hybridrow"
)

// executeBatch answers POST .../docs with the batch headers and executes all operations on
// one logical partition, or none. The answer is 200 if all succeed. Otherwise it is 207,
// where the failed operation has its own status and all others have 424.
//
//   - Supports: create, upsert, replace, read, delete and patch; If-Match per operation.
//     Operations see the effects of earlier ones, and all writes share one LSN. Operations
//     and results are JSON, or HybridRow for the .NET SDK. A batch without the atomic header
//     is a bulk: see executeBulk.
//   - Refuses: no operations, more than 100 or an unknown type (400), a response of more
//     than 2 MB (207 with 413 for the last operation).
//   - Source: emulator_cosmos_batch_test.go of azcosmos, .NET's BatchSinglePartitionKeyTests.
func executeBatch(x *request) (*reply, error) {
	if !isTrue(x.header, headerBatchAtomic) {
		return executeBulk(x)
	}
	c, part, err := x.target()
	if err != nil {
		return nil, err
	}
	operations, err := batchOperations(x.body)
	if err != nil {
		return nil, err
	}
	b := newBatchRun(x, c, part, operations)
	if err := b.prepare(); err != nil {
		return nil, err
	}
	if b.reads() {
		if err := x.checkSession(c, x.at); err != nil {
			return nil, err
		}
	}
	commit, err := c.Update(part, b.run)
	a := batchReply(x, b.results)
	switch {
	case errors.Is(err, errBatchFailed):
		a.session = rangeToken(x.at, x.at.LSN())
		x.route.contentPath = "" // a failed batch has no content path
	case err != nil:
		return nil, err
	default:
		a.session = commitToken(commit)
	}
	return a, nil
}

// batchReply encodes results in the form of the request: JSON or HybridRow.
func batchReply(x *request, results []batchResult) *reply {
	a := ok(http.StatusOK, x.buffer, 0)
	for i := range results {
		a.charge += results[i].charge
		if results[i].status >= http.StatusMultipleChoices { // including 304
			a.status = http.StatusMultiStatus
		}
	}
	if hybridrow.Is(x.body) {
		a.binary = true
		a.body = hybridrow.AppendSegment(a.body)
		for i := range results {
			r := &results[i]
			row := hybridrow.Result{Status: r.status, SubStatus: r.sub, ETag: r.etag, Body: r.body, Charge: r.charge}
			a.body = row.Append(a.body)
		}
		return a
	}
	a.body = append(a.body, '[')
	for i := range results {
		if i > 0 {
			a.body = append(a.body, ',')
		}
		a.body = results[i].append(a.body)
	}
	a.body = append(a.body, ']')
	return a
}
