package hybridrow

import (
	"encoding/binary"
	"math"
)

// Kinds of operations, with the values of the SDK's OperationType.
const (
	Create  = 0
	Patch   = 1
	Read    = 2
	Delete  = 4
	Replace = 5
	Upsert  = 20
)

// resourceDocument is the resource type of items.
const resourceDocument = 2

// Operation is one operation of a batch. Body is nil if there is none.
type Operation struct {
	Kind         int32
	PartitionKey string // JSON, "" if it is in the header of the request
	ID           string
	Body         []byte
	IfMatch      string
	IfNoneMatch  string
	Minimal      bool // the reply needs no body
}

// Bits of the columns of an operation, in the order of the schema.
const (
	bitKind = 1 << iota
	bitResource
	bitPartitionKey
	bitEPK
	bitID
	bitBinaryID
	bitBody
)

// Type codes of sparse fields.
const (
	codeFalse   = 2
	codeTrue    = 3
	codeInt32   = 7
	codeFloat64 = 16
	codeUTF8    = 20
)

// Numbers of the names of an operation's sparse fields: the schema's columns from 1.
const (
	nameIndexing = 8 + iota
	nameIfMatch
	nameIfNoneMatch
	nameTTL
	nameMinimal
	names // the number of known names; larger numbers precede a spelled-out name
)

// Parse reads the operations of a batch. They alias the stream.
func Parse(stream []byte) ([]Operation, error) {
	var out []Operation
	err := records(stream, func(row []byte) error {
		op, err := parseOperation(row)
		out = append(out, op)
		return err
	})
	return out, err
}

func parseOperation(row []byte) (op Operation, err error) {
	r := &reader{rest: row}
	r.header(schemaRequest)
	present := r.byte()
	if r.err == nil && (present&(bitKind|bitResource) != bitKind|bitResource || present > bitBody<<1-1) {
		r.fail("an operation has the columns %07b", present)
	}
	op.Kind = int32(r.uint32())
	if kind := r.uint32(); r.err == nil && kind != resourceDocument {
		r.fail("resource type %d is not that of items", kind)
	}
	if present&bitPartitionKey != 0 {
		op.PartitionKey = string(r.text())
	}
	if present&bitEPK != 0 {
		r.fail("the field effectivePartitionKey is not supported")
	}
	if present&bitID != 0 {
		op.ID = string(r.text())
	}
	if present&bitBinaryID != 0 {
		r.fail("the field binaryId is not supported")
	}
	if present&bitBody != 0 {
		op.Body = r.text()
	}
	for r.err == nil && len(r.rest) > 0 {
		op.sparse(r)
	}
	return op, r.err
}

func (op *Operation) sparse(r *reader) {
	code, name := r.byte(), r.varuint()
	switch {
	case r.err != nil:
	case name == nameIfMatch && code == codeUTF8:
		op.IfMatch = string(r.text())
	case name == nameIfNoneMatch && code == codeUTF8:
		op.IfNoneMatch = string(r.text())
	case name == nameMinimal && (code == codeTrue || code == codeFalse):
		op.Minimal = code == codeTrue
	case name == nameIndexing && code == codeUTF8:
		r.text() // ignored, because every query is answered as if all properties were indexed
	case name == nameTTL && code == codeInt32:
		r.fail("the field timeToLiveInSeconds is not supported: set ttl in the item")
	case name >= names:
		r.fail("the field %q is not of the schema", r.take(name-names))
	default:
		r.fail("field %d with type code %d is not of the schema", name, code)
	}
}

// Result is the outcome of one operation. Body is nil and ETag is "" if there is none.
type Result struct {
	Status, SubStatus int
	ETag              string
	Body              []byte
	Charge            float64
}

// Bits and names of the columns of a result, in the order of the schema.
const (
	bitStatus = 1 << iota
	bitSubStatus
	bitETag
	bitResultBody

	nameCharge = 6
)

// AppendSegment starts a stream of results.
func AppendSegment(dst []byte) []byte { return appendSegment(dst) }

// Append appends a result to a stream.
func (r *Result) Append(dst []byte) []byte {
	return appendRecord(dst, func(dst []byte) []byte {
		dst = appendHeader(dst, schemaResult)
		present := byte(bitStatus | bitSubStatus)
		if r.ETag != "" {
			present |= bitETag
		}
		if r.Body != nil {
			present |= bitResultBody
		}
		dst = append(dst, present)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(r.Status))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(r.SubStatus))
		if r.ETag != "" {
			dst = append(binary.AppendUvarint(dst, uint64(len(r.ETag))), r.ETag...)
		}
		if r.Body != nil {
			dst = append(binary.AppendUvarint(dst, uint64(len(r.Body))), r.Body...)
		}
		dst = append(dst, codeFloat64, nameCharge)
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(r.Charge))
	})
}
