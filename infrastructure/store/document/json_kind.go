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

	wrong     error                   // the reason that no event can be encoded
	hasMember func(name string) error // an error if the payload has such a member; nil if unknown
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

// Kind returns the kind for NewUnitsOfWork, which reports missing fields, and members of a state or a payload
// that have a name of the root or of all events. Members that the zero value omits fail at the commit.
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
		if codec.wrong != nil {
			k.wrong = fmt.Errorf("document: the JSON kind %q, event %s: %w", j.Type, codec.Action, codec.wrong)
		}
		k.Events[codec.Action] = codec.Encode
	}
	k.hasMember = func(name string) error {
		for _, codec := range j.Events {
			if codec.hasMember == nil {
				continue
			}
			if err := codec.hasMember(name); err != nil {
				return fmt.Errorf("event %s: %w", codec.Action, err)
			}
		}
		return nil
	}
	if wrong := takenIn[S](rootMembers); wrong != nil {
		k.wrong = fmt.Errorf("document: the JSON kind %q: %w", j.Type, wrong)
	}
	k.Encode = func(a A, commit aggregate.Commit) ([]byte, error) {
		data, err := AppendMembers([]byte{'{'}, j.State(a), rootMembers, rootMembers)
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
// schemaVersion, traceparent), in upper or lower case, otherwise the commit fails. The same
// holds for the Kind.IDMember of its kind.
func JSONEvent[P event.Payload]() EventCodec {
	var none P
	hasMember := func(name string) error { return takenIn[P]([]string{name}) }
	return EventCodec{Action: none.Action(), wrong: takenIn[P](EventMembers), hasMember: hasMember, Encode: func(dst []byte, e event.Event) ([]byte, error) {
		of, ok := e.(event.Of[P])
		if !ok {
			return nil, fmt.Errorf("the event is a %T, its codec is for a %T", e, of)
		}
		return AppendMembers(dst, of.Payload, EventMembers, EventMembers)
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

// errTaken is the fault of a struct, so no value of it can be encoded.
var errTaken = errors.New("the name of the member is taken; give it another in the struct tag")

// takenIn returns the error of the zero value of T that has a taken member, nil if it has none or cannot be encoded.
func takenIn[T any](taken []string) (err error) {
	defer func() {
		if recover() != nil { // a MarshalJSON that expects another value; the commit checks what it writes
			err = nil
		}
	}()
	var none T
	if _, err := AppendMembers([]byte{'{'}, none, taken, taken); errors.Is(err, errTaken) {
		return err
	}
	return nil
}

// AppendMembers appends the members of the object v to dst, which ends in an opening brace or
// in a member. No member may have one of the names taken, or differ from one of those written only in upper and
// lower case: encoding/json does not distinguish these, so a field without a tag would be read with the value of
// the other member.
func AppendMembers(dst []byte, v any, taken, written []string) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(text) < 2 || text[0] != '{' {
		return nil, fmt.Errorf("a %T is not encoded as an object", v)
	}
	if err := refuseMembers(text, taken, written); err != nil {
		return nil, fmt.Errorf("%T: %w", v, err)
	}
	return append(dst, text[1:len(text)-1]...), nil
}

// refuseMembers returns errTaken for a member of an object that AppendMembers refuses.
func refuseMembers(object []byte, taken, written []string) error {
	s := jsontext.NewScanner(object)
	return s.Object(func(member string) error {
		if slices.Contains(taken, member) || slices.ContainsFunc(written, func(name string) bool { return strings.EqualFold(name, member) }) {
			return errTaken
		}
		return s.Skip()
	})
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
