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
	KindParked    = "parked" // an event that was set aside, or that an operator skipped
	KindOther     = "other"  // the service writes it; a Run has no use for it
)

// Document is what a Run needs of one stored document. Members that its kind has no
// use for are zero.
type Document struct {
	Kind     string
	ID       string // of a parked event: the event's
	Key      string // events only, like Action
	Action   string
	Version  int64
	Sequence int64
}

// ErrUnknownType is in the error about a document that the service does not write.
var ErrUnknownType = errors.New("the service writes no such document")

// kinds are the types of the documents that the service writes, in all its containers
// but that of leases. Any other type is an aggregate's if its data has a version or a
// sequence.
var kinds = map[string]string{
	"domainEvent": KindEvent, "parkedEvent": KindParked, "skippedEvent": KindParked,
	"request": KindOther, "tombstone": KindOther, "auditEntry": KindOther, "gate": KindOther, "closedKey": KindOther, "fence": KindOther,
}

// skippedPrefix begins the id of the record of an event that an operator skipped.
const skippedPrefix = "$skipped-"

// DecodeDocument reads a document as the store returns it. It has a reading of its own,
// so that the verifier does not share a mistake with the service. A document that is
// not as the service writes it gives an error that says what is wrong, with
// ErrUnknownType in it if its type is; what could be read of it is returned all the
// same, without a kind if that is not known. Nothing returned refers to raw.
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
	case err != nil: // the rest follows from it
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

// check says what a Run could not do without.
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

// Aggregate is the document as an aggregate, for KindAggregate.
func (d *Document) Aggregate() Aggregate {
	return Aggregate{ID: d.ID, Version: d.Version, Sequence: d.Sequence}
}

// Event is the document as an event, for KindEvent. Where it stands in the change feed
// is not in it.
func (d *Document) Event() Event {
	return Event{ID: d.ID, Key: d.Key, Action: d.Action, Version: d.Version, Sequence: d.Sequence}
}
