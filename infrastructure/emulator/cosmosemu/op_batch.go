package cosmosemu

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
)

// maxBatch is the service's limit of operations in a batch.
const maxBatch = 100

// batchOperation is one operation as the request has it.
type batchOperation struct {
	kind        string
	id          string
	ifMatch     string
	ifNoneMatch string
	body        []byte // JSON
}

// batchResult is one operation's outcome.
type batchResult struct {
	status  int
	sub     int
	charge  float64
	etag    string
	body    []byte // JSON of the item, nil for none
	message string // of a failure
}

// errBatchFailed aborts the transaction of a batch; the results say why.
var errBatchFailed = errors.New("an operation of the batch failed")

// executeBatch answers POST .../docs with the batch headers: all operations on
// one logical partition, or none.
//
// 200 if all succeed; else 207, where the failed operation has its own status and
// all others 424. Operations see the effects of those before them. All writes
// share one LSN.
func executeBatch(x *exchange) (*reply, error) {
	if !isTrue(x.header, headerBatchAtomic) {
		return nil, refuse(http.StatusBadRequest, "Batches that are not atomic (bulk) are not supported by this emulator")
	}
	c, part, err := x.target()
	if err != nil {
		return nil, err
	}
	operations, err := parseBatch(x.body)
	if err != nil {
		return nil, err
	}
	b := &batchRun{x: x, def: c.Definition(), part: part, operations: operations, results: make([]batchResult, len(operations))}
	if err := b.prepare(); err != nil {
		return nil, err
	}
	commit, err := c.Update(part, b.run)
	if err != nil && !errors.Is(err, errBatchFailed) {
		return nil, err
	}
	status := http.StatusOK
	if err != nil {
		status = http.StatusMultiStatus
	}
	a := ok(status, x.buffer, 0)
	a.body = append(a.body, '[')
	for i := range b.results {
		if i > 0 {
			a.body = append(a.body, ',')
		}
		a.body = b.results[i].append(a.body)
		a.charge += b.results[i].charge
	}
	a.body = append(a.body, ']')
	a.session = sessionToken(commit.Range, commit.LSN)
	return a, nil
}

func parseBatch(body []byte) ([]batchOperation, error) {
	operations := make([]batchOperation, 0, 8)
	start := func() { operations = append(operations, batchOperation{}) }
	err := document.Objects(body, start, func(name, value []byte) error {
		op := &operations[len(operations)-1]
		switch string(name) {
		case "operationType":
			return text(&op.kind, "operationType", value)
		case "id":
			return text(&op.id, "id", value)
		case "ifMatch":
			return text(&op.ifMatch, "ifMatch", value)
		case "ifNoneMatch":
			return text(&op.ifNoneMatch, "ifNoneMatch", value)
		case "resourceBody":
			op.body = value
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "The request body is not a batch: %v", err)
	case len(operations) == 0:
		return nil, refuse(http.StatusBadRequest, "The batch has no operations")
	case len(operations) > maxBatch:
		return nil, refuse(http.StatusBadRequest, "The batch has %d operations, at most %d are allowed", len(operations), maxBatch)
	}
	return operations, nil
}

func text(dst *string, name string, value []byte) error {
	if value[0] != '"' {
		return refuse(http.StatusBadRequest, "%s must be a string", name)
	}
	*dst = document.Unquote(value)
	return nil
}

func (r *batchResult) append(dst []byte) []byte {
	dst = append(dst, `{"statusCode":`...)
	dst = strconv.AppendInt(dst, int64(r.status), 10)
	if r.sub != 0 {
		dst = append(dst, `,"subStatusCode":`...)
		dst = strconv.AppendInt(dst, int64(r.sub), 10)
	}
	dst = append(dst, `,"requestCharge":`...)
	dst = append(dst, formatCharge(r.charge)...)
	if r.etag != "" {
		dst = append(dst, `,"eTag":"\`...)
		dst = append(dst, r.etag[:len(r.etag)-1]...)
		dst = append(dst, `\""`...)
	}
	if r.message != "" {
		dst = append(dst, `,"message":`...)
		message, _ := json.Marshal(r.message) // a string never fails
		dst = append(dst, message...)
	}
	if r.body != nil {
		dst = append(dst, `,"resourceBody":`...)
		dst = append(dst, r.body...)
	}
	return append(dst, '}')
}
