package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"feedbox/domain/fault"
)

// EditableEvent is a stored event for a person to correct.
type EditableEvent struct {
	Document []byte // without the members that the store adds
	Version  string // of the stored document
	// Trouble is the reason for which it cannot be sent as it is; "" if it can.
	Trouble string
}

// editor is a store whose events can be replaced.
type editor interface {
	// Replace replaces the document of the event if it still has this version, else it
	// returns PreconditionFailed.
	Replace(ctx context.Context, key, id string, document []byte, version string) error
	// Editable removes the members that the store adds from a document that was read.
	Editable(document []byte) (clean []byte, version string, err error)
}

// ReadEditable reads an event from the store. NotFound if it has expired or was removed.
func (o *Operator) ReadEditable(ctx context.Context, key, id string) (EditableEvent, error) {
	m, err := o.editor()
	if err != nil {
		return EditableEvent{}, err
	}
	raw, err := o.store.Events.Event(ctx, key, id)
	if err != nil {
		return EditableEvent{}, err
	}
	clean, version, err := m.Editable(raw)
	if err != nil {
		return EditableEvent{}, err
	}
	return EditableEvent{Document: clean, Version: version, Trouble: o.trouble(key, id, clean)}, nil
}

// CheckEdit returns the reason for which a document cannot replace the event, "" if it can.
func (o *Operator) CheckEdit(key, id string, document []byte) string {
	if !json.Valid(document) {
		return "it is not JSON"
	}
	return o.trouble(key, id, document)
}

// ReplaceEvent replaces the document of a stored event. The parked copy is unchanged until it
// is retried from the store.
//
// Invalid if the document is no event of that id and key, PreconditionFailed if the stored
// document has changed since version was read.
func (o *Operator) ReplaceEvent(ctx context.Context, key, id string, document []byte, version string) error {
	if trouble := o.CheckEdit(key, id, document); trouble != "" {
		return fault.New(fault.Invalid, "unsendable", "the corrected document cannot be sent: "+trouble)
	}
	m, err := o.editor()
	if err != nil {
		return err
	}
	return m.Replace(ctx, key, id, document, version)
}

// trouble returns the reason for which a document is not the event with that id and key.
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

func (o *Operator) editor() (editor, error) {
	if m, ok := o.store.Events.(editor); ok {
		return m, nil
	}
	return nil, fault.New(fault.Conflict, "not_editable", "events of this store are corrected with its own tools")
}
