package firestore

import (
	"maps"
	"slices"
	"strconv"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Members of several collections.
const (
	memberExpires = "expireAt" // when the TTL policy removes the document
	memberAt      = "at"       // the service's time of the request
)

// fields are the members of a document. Their types are those of value.
type fields map[string]any

// reference is the name of a document as a value.
type reference string

// value is v as Firestore has it. Other types than these panic: they are no input.
func value(v any) *pb.Value {
	switch v := v.(type) {
	case string:
		return &pb.Value{ValueType: &pb.Value_StringValue{StringValue: v}}
	case []byte:
		return &pb.Value{ValueType: &pb.Value_BytesValue{BytesValue: v}}
	case int64:
		return &pb.Value{ValueType: &pb.Value_IntegerValue{IntegerValue: v}}
	case bool:
		return &pb.Value{ValueType: &pb.Value_BooleanValue{BooleanValue: v}}
	case time.Time:
		return &pb.Value{ValueType: &pb.Value_TimestampValue{TimestampValue: timestamppb.New(v.Truncate(time.Microsecond))}}
	case reference:
		return &pb.Value{ValueType: &pb.Value_ReferenceValue{ReferenceValue: string(v)}}
	case []int64:
		list := &pb.ArrayValue{}
		for _, one := range v {
			list.Values = append(list.Values, value(one))
		}
		return &pb.Value{ValueType: &pb.Value_ArrayValue{ArrayValue: list}}
	default:
		panic("firestore: no value is made of this type")
	}
}

// anew makes each state of a document one that it never had: what changes nothing gets no new
// update time.
func (f fields) anew() fields {
	f["state"] = uuid.NewString()
	return f
}

// expires adds when what lives this long expires; negative is never.
func (f fields) expires(lifetime time.Duration) fields {
	if lifetime >= 0 {
		f[memberExpires] = time.Now().Add(lifetime)
	}
	return f
}

// live reports whether a document is there: one that has expired is not any more, removed
// or not.
func live(d *pb.Document) bool {
	return d != nil && (d.Fields[memberExpires] == nil || d.Fields[memberExpires].GetTimestampValue().AsTime().After(time.Now()))
}

func text(d *pb.Document, member string) string  { return d.Fields[member].GetStringValue() }
func number(d *pb.Document, member string) int64 { return d.Fields[member].GetIntegerValue() }
func moment(d *pb.Document, member string) time.Time {
	if d.Fields[member] == nil {
		return time.Time{}
	}
	return d.Fields[member].GetTimestampValue().AsTime()
}

// The conditions of a write.
var (
	always *pb.Precondition
	absent = &pb.Precondition{ConditionType: &pb.Precondition_Exists{Exists: false}}
)

// as is the condition that a document is there and has this tag.
func as(tag string) *pb.Precondition {
	n, err := strconv.ParseInt(tag, 10, 64)
	if err != nil {
		n = 1 // no document has it
	}
	return &pb.Precondition{ConditionType: &pb.Precondition_UpdateTime{UpdateTime: timestamppb.New(time.UnixMicro(n))}}
}

// still is the condition that a document is as it was read: has this tag, or is not there, "".
func still(tag string) *pb.Precondition {
	if tag == "" {
		return absent
	}
	return as(tag)
}

// tagOf is the tag of a document, as it was read or written: the time of its last change in
// microseconds, "" of none. No later state has it again.
func tagOf(d interface{ GetUpdateTime() *timestamppb.Timestamp }) string {
	if changed := d.GetUpdateTime(); changed != nil {
		return strconv.FormatInt(changed.AsTime().UnixMicro(), 10)
	}
	return ""
}

// put stores a document in place of what may be there.
func (db *DB) put(collection, id string, f fields, when *pb.Precondition) *pb.Write {
	d := &pb.Document{Name: db.document(collection, id), Fields: make(map[string]*pb.Value, len(f))}
	for name, v := range f {
		d.Fields[name] = value(v)
	}
	return &pb.Write{Operation: &pb.Write_Update{Update: d}, CurrentDocument: when}
}

// patch stores members of a document, and leaves the rest of it as it is.
func (db *DB) patch(collection, id string, f fields, when *pb.Precondition) *pb.Write {
	w := db.put(collection, id, f, when)
	w.UpdateMask = &pb.DocumentMask{FieldPaths: slices.Collect(maps.Keys(f))}
	return w
}

func (db *DB) remove(collection, id string, when *pb.Precondition) *pb.Write {
	return &pb.Write{Operation: &pb.Write_Delete{Delete: db.document(collection, id)}, CurrentDocument: when}
}

// Operators of a condition of a query.
const (
	equal   = pb.StructuredQuery_FieldFilter_EQUAL
	oneOf   = pb.StructuredQuery_FieldFilter_IN
	atLeast = pb.StructuredQuery_FieldFilter_GREATER_THAN_OR_EQUAL
	above   = pb.StructuredQuery_FieldFilter_GREATER_THAN
	less    = pb.StructuredQuery_FieldFilter_LESS_THAN
)

// condition is one of a query.
type condition struct {
	member string
	is     pb.StructuredQuery_FieldFilter_Operator
	value  any
}

// byName is the member by which documents are ordered in an index that names none.
const byName = "__name__"

// find asks for documents that meet all conditions, in the order of a member; limit 0 is
// all.
func find(collection, order string, limit int, conditions ...condition) *pb.StructuredQuery {
	q := &pb.StructuredQuery{
		From:    []*pb.StructuredQuery_CollectionSelector{{CollectionId: collection}},
		OrderBy: []*pb.StructuredQuery_Order{{Field: &pb.StructuredQuery_FieldReference{FieldPath: order}, Direction: pb.StructuredQuery_ASCENDING}},
	}
	if limit > 0 {
		q.Limit = wrapperspb.Int32(int32(limit)) //nolint:gosec // small
	}
	all := &pb.StructuredQuery_CompositeFilter{Op: pb.StructuredQuery_CompositeFilter_AND}
	for _, c := range conditions {
		all.Filters = append(all.Filters, &pb.StructuredQuery_Filter{FilterType: &pb.StructuredQuery_Filter_FieldFilter{FieldFilter: &pb.StructuredQuery_FieldFilter{
			Field: &pb.StructuredQuery_FieldReference{FieldPath: c.member}, Op: c.is, Value: value(c.value),
		}}})
	}
	if len(conditions) > 0 {
		q.Where = &pb.StructuredQuery_Filter{FilterType: &pb.StructuredQuery_Filter_CompositeFilter{CompositeFilter: all}}
	}
	return q
}
