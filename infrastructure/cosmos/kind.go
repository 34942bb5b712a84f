package cosmos

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"feedbox/domain/aggregate"
	"feedbox/domain/event"
	"feedbox/domain/fault"
)

// Kind says how the aggregates A are stored. Type, Encode, Decode and Events are required;
// JSON makes a kind whose documents are written by encoding/json. A kind is not changed
// once it is in use, and its functions are safe for concurrent use.
//
// Whether several events of one action become one is the aggregate's choice
// (event.Recorder).
type Kind[A aggregate.Aggregate] struct {
	// Type is the type member of the aggregates' documents, such as "order". No other kind
	// and none of this package's own types may have it.
	Type string
	// Noun is what people call such an aggregate, in faults. Default: Type.
	Noun string
	// IDMember names the member of events, notes and audit entries that holds the
	// aggregate's id. Default "aggregateId".
	IDMember string
	// DeletedTTL is how long a deleted aggregate stays. Default Options.DeletedTTL;
	// negative is for ever.
	DeletedTTL time.Duration
	// Encode returns the data of the aggregate's document as the commit leaves it: a JSON
	// object, compact, with the members version, sequence and deleted.
	Encode func(a A, commit aggregate.Commit) ([]byte, error)
	// Decode returns the aggregate of such data. It may keep the memory of data.
	Decode func(data []byte) (A, error)
	// Events are the codecs of its events, by action.
	Events map[string]EventEncoder

	wrong error // why the kind cannot be used
}

// EventEncoder appends the members that only events of one action have to dst, which ends
// in the brace that opens an object: names and values of JSON with commas between them. The
// members that all events have are written by this package; see eventMembers.
type EventEncoder func(dst []byte, e event.Event) ([]byte, error)

const defaultIDMember = "aggregateId"

// ownTypes are the types of this package's own documents.
var ownTypes = []string{typeDomainEvent, typeRequest, typeAudit, typeTombstone}

// withDefaults returns a checked copy.
func (k *Kind[A]) withDefaults(o *Options) (*Kind[A], error) {
	if k == nil {
		return nil, errors.New("cosmos: the kind of the aggregates is nil")
	}
	if k.wrong != nil {
		return nil, k.wrong
	}
	given := *k
	var faults []error
	if given.Type == "" || given.Encode == nil || given.Decode == nil || len(given.Events) == 0 {
		faults = append(faults, fmt.Errorf("cosmos: kind %q needs Type, Encode, Decode and Events", given.Type))
	}
	for _, own := range ownTypes {
		if given.Type == own {
			faults = append(faults, fmt.Errorf("cosmos: the type %q is taken by documents of this package; choose another for the kind", own))
		}
	}
	for action, encode := range given.Events {
		if action == "" || encode == nil {
			faults = append(faults, fmt.Errorf("cosmos: kind %s has an event without an action or an encoder (%q)", given.Type, action))
		}
	}
	if given.DeletedTTL > maxTTL {
		faults = append(faults, fmt.Errorf("cosmos: DeletedTTL of kind %s is longer than the store can count, %s", given.Type, maxTTL))
	}
	given.Noun = cmp.Or(given.Noun, given.Type)
	given.IDMember = cmp.Or(given.IDMember, defaultIDMember)
	given.DeletedTTL = cmp.Or(given.DeletedTTL, o.DeletedTTL)
	return &given, errors.Join(faults...)
}

// document returns the document of a. A deleted aggregate expires, any other never.
func (k *Kind[A]) document(a A, commit aggregate.Commit) (DataObject, error) {
	data, err := k.Encode(a, commit)
	if err != nil {
		return DataObject{}, fmt.Errorf("encode %s %s: %w", k.Noun, a.ID(), err)
	}
	ttl := never
	if a.Deleted() {
		ttl = seconds(k.DeletedTTL)
	}
	return DataObject{ID: a.ID().String(), PartitionKey: partitionKeyOf(a.ID()), Type: k.Type, Data: data, TTL: ttl}, nil
}

// aggregate returns the aggregate that was read for id. A document of another type is
// none.
func (k *Kind[A]) aggregate(id uuid.UUID, o DataObject) (a A, err error) {
	if o.Type != k.Type {
		return a, k.notFound(id)
	}
	if a, err = k.Decode(o.Data); err != nil {
		return a, fmt.Errorf("decode %s %s: %w", k.Noun, o.ID, err)
	}
	if a.ID().String() != o.ID {
		return a, fmt.Errorf("decode %s %s: its data has the id %s", k.Noun, o.ID, a.ID())
	}
	return a, nil
}

func (k *Kind[A]) notFound(id uuid.UUID) error { return fault.Missing(k.Noun, id.String()) }

func (k *Kind[A]) changedByAnother() error {
	return fault.New(fault.PreconditionFailed, "", "the "+k.Noun+" was changed by somebody else; read it again")
}
