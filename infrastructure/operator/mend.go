package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"feedbox/domain/fault"
)

// Mendable is a stored event that a person may correct.
type Mendable struct {
	Document []byte // without what the store adds
	Version  string // of the stored document
	// Trouble says why it cannot be sent as it stands; "" = it can.
	Trouble string
}

// mender is a store whose events can be replaced.
type mender interface {
	// Replace puts document in place of the event if its version is still that. It returns
	// PreconditionFailed otherwise.
	Replace(ctx context.Context, key, id string, document []byte, version string) error
	// Editable takes what the store adds off a document that was read.
	Editable(document []byte) (clean []byte, version string, err error)
}

// ReadMendable reads an event where it was committed. NotFound if it has gone.
func (o *Operator) ReadMendable(ctx context.Context, key, id string) (Mendable, error) {
	m, err := o.mender()
	if err != nil {
		return Mendable{}, err
	}
	raw, err := o.store.Events.Event(ctx, key, id)
	if err != nil {
		return Mendable{}, err
	}
	clean, version, err := m.Editable(raw)
	if err != nil {
		return Mendable{}, err
	}
	return Mendable{Document: clean, Version: version, Trouble: o.trouble(key, id, clean)}, nil
}

// CheckMended says why a document cannot stand in place of the event; "" = it can.
func (o *Operator) CheckMended(key, id string, document []byte) string {
	if !json.Valid(document) {
		return "it is not JSON"
	}
	return o.trouble(key, id, document)
}

// Mend puts a corrected document in place of a stored event. What is parked stays as it is
// until it is retried from the store.
//
// Invalid if the document is no event of that id and key, PreconditionFailed if it was
// changed since version was read.
func (o *Operator) Mend(ctx context.Context, key, id string, document []byte, version string) error {
	if trouble := o.CheckMended(key, id, document); trouble != "" {
		return fault.New(fault.Invalid, "unsendable", "the corrected document cannot be sent: "+trouble)
	}
	m, err := o.mender()
	if err != nil {
		return err
	}
	return m.Replace(ctx, key, id, document, version)
}

// trouble says why a document is not the event that it has to be.
func (o *Operator) trouble(key, id string, document []byte) string {
	m, isEvent, err := o.store.Decoder.Decode(bytes.Clone(document))
	switch {
	case err != nil:
		return err.Error()
	case !isEvent:
		return "it is not an event: its type is another"
	case m.ID != id:
		return fmt.Sprintf("its id is %q, not %s", m.ID, id)
	case m.Key != key:
		return fmt.Sprintf("its key is %q, not %s", m.Key, key)
	}
	return ""
}

func (o *Operator) mender() (mender, error) {
	if m, ok := o.store.Events.(mender); ok {
		return m, nil
	}
	return nil, fault.New(fault.Conflict, "not_mendable", "events of this store are corrected with its own tools")
}
