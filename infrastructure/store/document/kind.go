package document

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"feedbox/domain/aggregate"
	"feedbox/domain/event"
	"feedbox/domain/fault"
)

// Kind defines the stored form of the aggregates A. Type, Encode, Decode and Events are
// required; JSON makes a kind whose documents are written by encoding/json. A kind must not be
// changed once it is in use, and its functions are safe for concurrent use.
//
// The aggregate decides whether several events of one action are merged (event.Recorder).
type Kind[A aggregate.Aggregate] struct {
	// Type is the type member of the aggregates' documents, such as "order". No other kind
	// and none of this package's own types may have it.
	Type string
	// Noun names such an aggregate in faults. Default: Type.
	Noun string
	// IDMember names the member of events, notes and audit entries that holds the
	// aggregate's id. Default "aggregateId". No other member of these may have the name.
	IDMember string
	// DeletedTTL is the lifetime of a deleted aggregate. Default: Options.DeletedTTL of the
	// units of work; negative is for ever.
	DeletedTTL time.Duration
	// Encode returns the data of the aggregate's document as the commit leaves it: a JSON
	// object, compact, with the members version, sequence and deleted.
	Encode func(a A, commit aggregate.Commit) ([]byte, error)
	// Decode returns the aggregate of such data. It may share the memory of data.
	Decode func(data []byte) (A, error)
	// Events are the codecs of its events, by action.
	Events map[string]EventEncoder

	wrong error // the reason that the kind cannot be used
	// hasMember returns an error if a payload has a member with that name, nil if unknown. Set for JSON kinds.
	hasMember func(name string) error
}

// EventEncoder appends the members of events of one action to dst, which ends in the opening
// brace of an object: JSON names and values, separated by commas. The members that all events
// have (EventMembers) are written by this package.
type EventEncoder func(dst []byte, e event.Event) ([]byte, error)

const defaultIDMember = "aggregateId"

// noteMembers are the members of notes and audit entries, which have an IDMember, too.
var noteMembers = []string{"hash", "commandId", "createdAt", "version", "at", "principal", "events"}

// The types of documents that are not aggregates. No kind may have one of them.
const (
	TypeEvent     = "domainEvent"
	TypeRequest   = "request"
	TypeAudit     = "auditEntry"
	TypeTombstone = "tombstone"
)

// Checked returns a copy with the defaults, or an error that names each fault.
func (k *Kind[A]) Checked() (*Kind[A], error) {
	if k == nil {
		return nil, errors.New("document: the kind of the aggregates is nil")
	}
	if k.wrong != nil {
		return nil, k.wrong
	}
	given := *k
	var faults []error
	if given.Type == "" || given.Encode == nil || given.Decode == nil || len(given.Events) == 0 {
		faults = append(faults, fmt.Errorf("document: kind %q needs Type, Encode, Decode and Events", given.Type))
	}
	for _, own := range []string{TypeEvent, TypeRequest, TypeAudit, TypeTombstone} {
		if given.Type == own {
			faults = append(faults, fmt.Errorf("document: the type %q is taken by documents that are no aggregates; choose another for the kind", own))
		}
	}
	for action, encode := range given.Events {
		if action == "" || encode == nil {
			faults = append(faults, fmt.Errorf("document: kind %s has an event without an action or an encoder (%q)", given.Type, action))
		}
	}
	given.Noun = cmp.Or(given.Noun, given.Type)
	given.IDMember = cmp.Or(given.IDMember, defaultIDMember)
	for _, own := range slices.Concat(EventMembers, noteMembers) {
		if given.IDMember != defaultIDMember && strings.EqualFold(given.IDMember, own) {
			faults = append(faults, fmt.Errorf("document: kind %s: IDMember %s is the name of another member of events, notes or audit entries; choose another", given.Type, given.IDMember))
		}
	}
	if given.hasMember != nil {
		if err := given.hasMember(given.IDMember); err != nil {
			faults = append(faults, fmt.Errorf("document: the JSON kind %q, %w", given.Type, err))
		}
	}
	return &given, errors.Join(faults...)
}

// Data returns the stored form of a after the commit.
func (k *Kind[A]) Data(a A, commit aggregate.Commit) ([]byte, error) {
	data, err := k.Encode(a, commit)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", k.Noun, a.ID(), err)
	}
	return data, nil
}

// Restore returns the aggregate that was stored as data under id.
func (k *Kind[A]) Restore(id uuid.UUID, data []byte) (a A, err error) {
	if a, err = k.Decode(data); err != nil {
		return a, fmt.Errorf("decode %s %s: %w", k.Noun, id, err)
	}
	if a.ID() != id {
		return a, fmt.Errorf("decode %s %s: its data has the id %s", k.Noun, id, a.ID())
	}
	return a, nil
}

// NotFound is the fault for an aggregate that does not exist.
func (k *Kind[A]) NotFound(id uuid.UUID) error { return fault.Missing(k.Noun, id.String()) }

// ChangedByAnother is the fault for an aggregate that was changed after it was read.
func (k *Kind[A]) ChangedByAnother() error {
	return fault.New(fault.PreconditionFailed, "", "the "+k.Noun+" was changed in the meantime; read it again")
}
