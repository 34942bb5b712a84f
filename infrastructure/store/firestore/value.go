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
	memberExpires = "expireAt" // the TTL policy deletes the document then
	memberAt      = "at"       // the server timestamp of the request
)

// fields are the members of a document, of the types that value supports.
type fields map[string]any

// reference is the name of a document as a value.
type reference string

// value returns v as a value of Firestore. Other types panic, because no input can cause them.
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

// unique makes each state of a document different from all others, because a write that changes
// nothing gets no new update time.
func (f fields) unique() fields {
	f["state"] = uuid.NewString()
	return f
}

// expires adds the time of expiry for a lifetime; a negative lifetime is for ever.
func (f fields) expires(lifetime time.Duration) fields {
	if lifetime >= 0 {
		f[memberExpires] = time.Now().Add(lifetime)
	}
	return f
}

// live reports whether a document exists and has not expired.
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

// hasTag is the condition that a document exists and has this tag.
func hasTag(tag string) *pb.Precondition {
	n, err := strconv.ParseInt(tag, 10, 64)
	if err != nil {
		n = 1 // no document has this tag
	}
	return &pb.Precondition{ConditionType: &pb.Precondition_UpdateTime{UpdateTime: timestamppb.New(time.UnixMicro(n))}}
}

// unchanged is the condition that a document has this tag, or that there is none if tag is "".
func unchanged(tag string) *pb.Precondition {
	if tag == "" {
		return absent
	}
	return hasTag(tag)
}

// tagOf returns the tag of a document that was read or written: its update time in microseconds,
// "" for none. Tags are never reused.
func tagOf(d interface{ GetUpdateTime() *timestamppb.Timestamp }) string {
	if changed := d.GetUpdateTime(); changed != nil {
		return strconv.FormatInt(changed.AsTime().UnixMicro(), 10)
	}
	return ""
}

// put returns the write of a document, which replaces an existing one.
func (db *DB) put(collection, id string, f fields, when *pb.Precondition) *pb.Write {
	d := &pb.Document{Name: db.document(collection, id), Fields: make(map[string]*pb.Value, len(f))}
	for name, v := range f {
		d.Fields[name] = value(v)
	}
	return &pb.Write{Operation: &pb.Write_Update{Update: d}, CurrentDocument: when}
}

// patch returns the write of some members of a document.
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

type condition struct {
	member string
	is     pb.StructuredQuery_FieldFilter_Operator
	value  any
}

// byName is the document name, the order of an index without an order of its own.
const byName = "__name__"

// find returns a query for the documents that meet all conditions, in the order of a member; limit
// 0 is all.
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
