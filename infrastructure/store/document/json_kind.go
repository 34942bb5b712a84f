package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"feedbox/domain/aggregate"
	"feedbox/domain/event"
	"feedbox/infrastructure/store/internal/jsontext"
)

// JSON describes a kind whose documents are written by encoding/json: states S, which
// encode to objects, and events whose payloads do. All fields are required.
type JSON[A aggregate.Aggregate, S any] struct {
	// Type is the type of the aggregates' documents, such as "order", and their noun in faults.
	Type string
	// State returns the stored state of a without its root.
	State func(a A) S
	// Restore returns the aggregate that was stored as root and s.
	Restore func(root aggregate.Root, s S) (A, error)
	// Events are the codecs of all events that the aggregate records, each made by JSONEvent.
	Events []EventCodec
}

// EventCodec is the encoder of the events of one action.
type EventCodec struct {
	Action string
	Encode EventEncoder
}

// rootMembers are the members of a document's data that hold the root of an aggregate.
var rootMembers = []string{"id", "version", "sequence", "deleted", "requestHash"}

// rootData is the stored form of the root, after the members of the state.
type rootData struct {
	ID          uuid.UUID `json:"id"`
	Version     int64     `json:"version"`
	Sequence    int64     `json:"sequence"`
	Deleted     bool      `json:"deleted"`
	RequestHash string    `json:"requestHash,omitempty"`
}

// Kind returns the kind for NewUnitsOfWork, which reports missing fields.
func (j JSON[A, S]) Kind() *Kind[A] {
	k := &Kind[A]{Type: j.Type, Events: make(map[string]EventEncoder, len(j.Events))}
	if j.State == nil || j.Restore == nil {
		k.wrong = fmt.Errorf("document: the JSON kind %q needs State and Restore", j.Type)
		return k
	}
	for _, codec := range j.Events {
		if _, twice := k.Events[codec.Action]; twice {
			k.wrong = fmt.Errorf("document: the JSON kind %q has two codecs for %s", j.Type, codec.Action)
		}
		k.Events[codec.Action] = codec.Encode
	}
	k.Encode = func(a A, commit aggregate.Commit) ([]byte, error) {
		data, err := AppendMembers([]byte{'{'}, j.State(a), rootMembers)
		if err != nil {
			return nil, err
		}
		s := a.Snapshot()
		return appendLast(data, rootData{s.ID, commit.Version, commit.Sequence, s.Deleted, s.RequestHash})
	}
	k.Decode = func(data []byte) (none A, err error) {
		stored, err := DecodeStored[S](data)
		if err != nil {
			return none, err
		}
		root, err := aggregate.Restore(stored.Root)
		if err != nil {
			return none, err
		}
		return j.Restore(root, stored.State)
	}
	return k
}

// JSONEvent returns the codec of events that aggregate.Record makes of the payload P, which
// encoding/json writes. The payload must encode to an object without the members that all
// events have (action, id, createdAt, aggregateId, aggregateVersion, sequence, ordinal,
// schemaVersion, traceparent), also in another case, otherwise the commit fails.
func JSONEvent[P event.Payload]() EventCodec {
	var none P
	return EventCodec{Action: none.Action(), Encode: func(dst []byte, e event.Event) ([]byte, error) {
		of, ok := e.(event.Of[P])
		if !ok {
			return nil, fmt.Errorf("the event is a %T, its codec is for a %T", e, of)
		}
		return AppendMembers(dst, of.Payload, EventMembers)
	}}
}

// Stored is an aggregate that was read for a query: its root and its state.
type Stored[S any] struct {
	Root  aggregate.Snapshot
	State S
}

// Listed is an aggregate of a page, with its ETag, quoted as in HTTP.
type Listed[S any] struct {
	Stored[S]
	ETag string
}

// DecodeStored decodes the data of a JSON kind.
func DecodeStored[S any](data []byte) (stored Stored[S], err error) {
	var root rootData
	if err := json.Unmarshal(data, &root); err != nil {
		return stored, err
	}
	stored.Root = aggregate.Snapshot(root)
	return stored, json.Unmarshal(data, &stored.State)
}

// AppendMembers appends the members of the object v to dst, which ends in an opening brace or
// in a member. No member may have one of the names taken, in any case: encoding/json does not distinguish the
// case of names, so a field without a tag would be read with the value of the other member.
func AppendMembers(dst []byte, v any, taken []string) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(text) < 2 || text[0] != '{' {
		return nil, fmt.Errorf("a %T is not encoded as an object", v)
	}
	s := jsontext.NewScanner(text)
	err = s.Object(func(member string) error {
		if slices.ContainsFunc(taken, func(name string) bool { return strings.EqualFold(name, member) }) {
			return errors.New("the name of the member is taken; give it another in the struct tag")
		}
		return s.Skip()
	})
	if err != nil {
		return nil, fmt.Errorf("%T: %w", v, err)
	}
	return append(dst, text[1:len(text)-1]...), nil
}

// appendLast appends the members of v and closes the object.
func appendLast(dst []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(dst) > 1 {
		dst = append(dst, ',')
	}
	return append(dst, text[1:]...), nil
}
