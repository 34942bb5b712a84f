package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// The values of Document.Kind.
const (
	KindAggregate = "aggregate"
	KindEvent     = "event"
	KindParked    = "parked" // an event that is parked, or that an operator skipped
	KindOther     = "other"  // written by the service, but not needed by a Run
)

// Document has the members of one stored document that a Run needs. Members that its kind
// does not have are zero.
type Document struct {
	Kind     string
	ID       string // for a parked event: the id of the event
	Key      string // events only, like Action
	Action   string
	Version  int64
	Sequence int64
}

// ErrUnknownType means that the service does not write documents of this type.
var ErrUnknownType = errors.New("the service writes no such document")

// kinds has the types of the documents that the service writes, in all containers except
// that of leases. Any other type is an aggregate if its data has a version or a sequence.
var kinds = map[string]string{
	"domainEvent": KindEvent, "parkedEvent": KindParked, "skippedEvent": KindParked,
	"request": KindOther, "tombstone": KindOther, "auditEntry": KindOther, "gate": KindOther, "closedKey": KindOther, "fence": KindOther, "owner": KindOther,
}

// skippedPrefix is the prefix of the id of a skipped event's record.
const skippedPrefix = "$skipped-"

// DecodeDocument decodes a document as the store returns it. It does not use the decoders of
// the service, because the verifier would share their mistakes. For a document that the
// service would not write it returns an error with the cause, and the members it could
// decode. If the type is unknown, the error wraps ErrUnknownType and Kind is empty. The
// result does not refer to raw.
func DecodeDocument(raw []byte) (Document, error) {
	var stored struct {
		ID           string `json:"id"`
		PartitionKey string `json:"partitionKey"`
		Type         string `json:"type"`
		Data         struct {
			Action           string `json:"action"`
			Version          *int64 `json:"version"`
			AggregateVersion int64  `json:"aggregateVersion"`
			Sequence         *int64 `json:"sequence"`
		} `json:"data"`
	}
	err := json.Unmarshal(raw, &stored)
	d := Document{Kind: kinds[stored.Type], ID: stored.ID}
	version, sequence := valueOf(stored.Data.Version), valueOf(stored.Data.Sequence)
	if d.Kind == "" && stored.Type != "" && (stored.Data.Version != nil || stored.Data.Sequence != nil) {
		d.Kind = KindAggregate
	}
	switch d.Kind {
	case KindAggregate:
		d.Version, d.Sequence = version, sequence
	case KindEvent:
		d.Key, d.Action, d.Version, d.Sequence = stored.PartitionKey, stored.Data.Action, stored.Data.AggregateVersion, sequence
	case KindParked:
		d.ID = strings.TrimPrefix(d.ID, skippedPrefix)
	}
	switch {
	case err != nil: // other errors would follow from it
	case d.Kind == "":
		err = fmt.Errorf("type %q: %w", stored.Type, ErrUnknownType)
	default:
		err = d.check()
	}
	if err != nil {
		return d, fmt.Errorf("document %q: %w", stored.ID, err)
	}
	return d, nil
}

func valueOf(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// check returns an error if a member that a Run needs is missing.
func (d *Document) check() error {
	switch {
	case d.ID == "":
		return errors.New("it has no id")
	case d.Kind == KindEvent && d.Key == "":
		return errors.New("it has no partition key")
	case d.Kind == KindEvent && d.Action == "":
		return errors.New("it has no action")
	case (d.Kind == KindEvent || d.Kind == KindAggregate) && (d.Version < 1 || d.Sequence < 1):
		return fmt.Errorf("version is %d and sequence %d: both count from 1", d.Version, d.Sequence)
	}
	return nil
}

// Aggregate returns the document as an aggregate, for KindAggregate.
func (d *Document) Aggregate() Aggregate {
	return Aggregate{ID: d.ID, Version: d.Version, Sequence: d.Sequence}
}

// Event returns the document as an event, for KindEvent, without its position in the change
// feed.
func (d *Document) Event() Event {
	return Event{ID: d.ID, Key: d.Key, Action: d.Action, Version: d.Version, Sequence: d.Sequence}
}

// Add adds a document of the store to a run, whose Parked must not be nil.
func (r *Run) Add(d Document) {
	switch d.Kind {
	case KindAggregate:
		r.Aggregates = append(r.Aggregates, d.Aggregate())
	case KindEvent:
		r.Events = append(r.Events, d.Event())
	case KindParked:
		r.Parked[d.ID] = true
	}
}
