package cosmosemu

import (
	"bytes"
	"errors"
	"net/http"
	"slices"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// errBatchFailed aborts the transaction of a batch. The results contain the reason.
var errBatchFailed = errors.New("an operation of the batch failed")

// batchRun executes a batch inside a transaction.
type batchRun struct {
	x          *request
	def        *store.Definition
	part       *store.Partition
	operations []batchOperation
	documents  []preparedWrite // of the operations that have one
	results    []batchResult
}

// preparedWrite is a document parsed before the transaction starts.
type preparedWrite struct {
	doc *document.Document
	err error
}

func newBatchRun(x *request, c *store.Container, part *store.Partition, operations []batchOperation) *batchRun {
	return &batchRun{x: x, def: c.Definition(), part: part, operations: operations, results: make([]batchResult, len(operations))}
}

// prepare parses the documents before the transaction, because that needs no lock. Only an
// unknown operation type fails the whole request.
func (b *batchRun) prepare() error {
	b.documents = make([]preparedWrite, len(b.operations))
	for i := range b.operations {
		switch op := &b.operations[i]; op.kind {
		case "Create", "Upsert", "Replace":
			doc, err := newItem(b.x.kind, op.body, b.def, b.part)
			b.documents[i] = preparedWrite{doc, err}
		case "Read", "Delete", "Patch":
		default:
			return refuse(http.StatusBadRequest, "The batch operation type %q is unknown", op.kind)
		}
	}
	return nil
}

// reads reports whether any operation is a read.
func (b *batchRun) reads() bool {
	return slices.ContainsFunc(b.operations, func(op batchOperation) bool { return op.kind == "Read" })
}

// run executes all operations. If one fails, it sets the results of all and returns
// errBatchFailed, which rolls the transaction back.
func (b *batchRun) run(tx *store.Tx) error {
	size, last := 0, len(b.operations)-1
	for i := range b.operations {
		r, err := b.one(tx, i)
		if err != nil {
			return b.fail(i, err)
		}
		if size += len(r.body); size > maxBody { // the service blames the last operation
			return b.fail(last, refuse(http.StatusRequestEntityTooLarge, "Response size is too large: more than %d bytes", maxBody))
		}
		b.results[i] = r
	}
	return nil
}

// fail sets the results of a batch whose operation i failed.
func (b *batchRun) fail(i int, err error) error {
	e := asWire(err)
	for j := range b.results {
		b.results[j] = batchResult{status: http.StatusFailedDependency}
	}
	b.results[i] = batchResult{status: e.Status, sub: e.SubStatus, charge: 1, message: e.Message}
	return errBatchFailed
}

func (b *batchRun) one(tx *store.Tx, i int) (batchResult, error) {
	op := &b.operations[i]
	switch op.kind {
	case "Create":
		return b.put(tx, writeCreate, i)
	case "Upsert":
		return b.put(tx, writeUpsert, i)
	case "Replace":
		return b.put(tx, writeReplace, i)
	case "Read":
		return b.read(tx, op)
	case "Patch":
		item, err := applyPatch(b.x, tx, b.def, b.part, op.id, op.body, op.ifMatch)
		return b.result(op, http.StatusOK, item), err
	}
	if err := checkMatch(tx, op.id, op.ifMatch); err != nil {
		return batchResult{}, err
	}
	found, err := tx.Delete(op.id)
	if err == nil && !found {
		err = noItem(op.id)
	}
	return batchResult{status: http.StatusNoContent, charge: deleteCharge}, err
}

func (b *batchRun) put(tx *store.Tx, kind writeKind, i int) (batchResult, error) {
	if w := b.documents[i]; w.err != nil {
		return batchResult{}, w.err
	}
	item, status, err := putItem(tx, kind, b.operations[i].id, b.documents[i].doc, b.operations[i].ifMatch)
	return b.result(&b.operations[i], status, item), err
}

func (b *batchRun) read(tx *store.Tx, op *batchOperation) (batchResult, error) {
	item, found, err := tx.Get(op.id)
	if err != nil {
		return batchResult{}, err
	}
	if !found {
		return batchResult{}, noItem(op.id)
	}
	if err := checkMatch(tx, op.id, op.ifMatch); err != nil {
		return batchResult{}, err
	}
	r := batchResult{status: http.StatusOK, charge: readCharge(len(item.Body)), etag: item.ETag, body: bytes.Clone(item.Body)}
	// A read with the item's ETag gets 304, whether it sends If-None-Match or If-Match:
	// .NET's BatchSinglePartitionKeyTests.
	if sameETag(op.ifNoneMatch, item.ETag) || sameETag(op.ifMatch, item.ETag) {
		r.status, r.body = http.StatusNotModified, nil
	}
	return r, nil
}

// result returns the result of a write, with the body only if the request wants bodies.
func (b *batchRun) result(op *batchOperation, status int, item store.Item) batchResult {
	r := batchResult{status: status, charge: writeCharge(len(item.Body)), etag: item.ETag}
	if !op.minimal && wantsBody(b.x.header) {
		r.body = bytes.Clone(item.Body)
	}
	return r
}
