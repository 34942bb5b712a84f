package cosmosemu

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/hybridrow"
)

// maxBatch is the service's limit of operations in a batch.
const maxBatch = 100

// batchOperation is one operation of a request.
type batchOperation struct {
	kind        string
	id          string
	ifMatch     string
	ifNoneMatch string
	key         string // JSON; only in a bulk
	minimal     bool   // the result needs no body
	body        []byte // JSON
}

// batchResult is the outcome of one operation.
type batchResult struct {
	status  int
	sub     int
	charge  float64
	etag    string
	body    []byte // JSON of the item, nil for none
	message string // of a failure
}

// batchOperations reads the operations of a request.
func batchOperations(body []byte) (operations []batchOperation, err error) {
	if hybridrow.Is(body) {
		operations, err = parseRows(body)
	} else {
		operations, err = parseBatch(body)
	}
	switch {
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "The request body is not a batch: %v", err)
	case len(operations) == 0:
		return nil, refuse(http.StatusBadRequest, "Batch request has no operations.")
	case len(operations) > maxBatch:
		return nil, refuse(http.StatusBadRequest, "Batch request has more operations than what is supported. It has %d, at most %d are allowed", len(operations), maxBatch)
	}
	return operations, nil
}

// rowKinds are the operation types in HybridRow.
var rowKinds = map[int32]string{
	hybridrow.Create: "Create", hybridrow.Patch: "Patch", hybridrow.Read: "Read",
	hybridrow.Delete: "Delete", hybridrow.Replace: "Replace", hybridrow.Upsert: "Upsert",
}

func parseRows(body []byte) ([]batchOperation, error) {
	rows, err := hybridrow.Parse(body)
	if err != nil {
		return nil, err
	}
	operations := make([]batchOperation, 0, len(rows))
	for i := range rows {
		r := &rows[i]
		kind, known := rowKinds[r.Kind]
		if !known {
			return nil, fmt.Errorf("operation type %d is unknown", r.Kind)
		}
		body, err := textOf(r.Body)
		if err != nil {
			return nil, err
		}
		operations = append(operations, batchOperation{
			kind: kind, id: r.ID, ifMatch: r.IfMatch, ifNoneMatch: r.IfNoneMatch, key: r.PartitionKey, minimal: r.Minimal, body: body,
		})
	}
	return operations, nil
}

// operationTypes are the known ones in the usual spelling, so that they need no allocation.
var operationTypes = map[string]string{
	`"Create"`: "Create", `"Upsert"`: "Upsert", `"Replace"`: "Replace", `"Read"`: "Read", `"Delete"`: "Delete", `"Patch"`: "Patch",
}

func parseBatch(body []byte) ([]batchOperation, error) {
	operations := make([]batchOperation, 0, 8)
	start := func() { operations = append(operations, batchOperation{}) }
	err := document.Objects(body, start, func(name, value []byte) error {
		op := &operations[len(operations)-1]
		switch string(name) {
		case "operationType":
			if op.kind = operationTypes[string(value)]; op.kind != "" {
				return nil
			}
			return text(&op.kind, "operationType", value)
		case "id":
			return text(&op.id, "id", value)
		case "ifMatch":
			return text(&op.ifMatch, "ifMatch", value)
		case "ifNoneMatch":
			return text(&op.ifNoneMatch, "ifNoneMatch", value)
		case "partitionKey":
			return text(&op.key, "partitionKey", value)
		case "minimalReturnPreference":
			op.minimal = string(value) == "true"
		case "resourceBody":
			op.body = value
		}
		return nil
	})
	return operations, err
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
	dst = appendCharge(dst, r.charge)
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
