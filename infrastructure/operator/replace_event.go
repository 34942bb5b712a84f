package operator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"feedbox/application/relay"
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

// ReadEditable reads an event from the store, NotFound if it has expired or was removed. For a consumer it
// reads the parked copy, because the consumer's store has no other one; NotFound if it is not among the
// first 100 parked events of key.
func (o *Operator) ReadEditable(ctx context.Context, key, id string) (EditableEvent, error) {
	if o.ofConsumer {
		_, e, err := o.parkedEvent(ctx, key, id)
		if err != nil {
			return EditableEvent{}, err
		}
		return EditableEvent{Document: e.Document, Version: versionOf(e.Document), Trouble: o.trouble(key, id, e.Document)}, nil
	}
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

// replaceTries bounds the attempts of ReplaceParked, because each event that the consumer parks for the
// key meanwhile changes the gate.
const replaceTries = 10

// ReplaceParked replaces the document of a parked event of a consumer and stores intent, in one
// transaction.
//
// Invalid if the document is not that event, PreconditionFailed if the parked document is not the one of
// version, NotFound as ReadEditable.
func (o *Operator) ReplaceParked(ctx context.Context, key, id string, document []byte, version string, intent relay.Intent) (g relay.Gate, err error) {
	if err := stamp(&intent); err != nil {
		return g, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for range replaceTries {
		var e relay.ParkedEvent
		if g, e, err = o.parkedEvent(ctx, key, id); err != nil {
			return g, err
		}
		trouble := o.CheckEdit(key, id, document)
		if m, _, wrong := o.store.ParkedDecoder.Decode(document); trouble == "" && wrong == nil && m.Sequence != e.Sequence {
			trouble = fmt.Sprintf("its sequence is %d, not %d", m.Sequence, e.Sequence)
		}
		switch {
		case trouble != "":
			return g, fault.New(fault.Invalid, "unsendable", "the corrected document cannot be handled: "+trouble)
		case versionOf(e.Document) != version:
			return g, fault.New(fault.PreconditionFailed, "", "the parked document of event "+id+" has changed")
		}
		var compact bytes.Buffer // the document was indented for the operator, and its body reaches the handler
		if err = json.Compact(&compact, document); err != nil {
			return g, fmt.Errorf("the corrected document: %w", err)
		}
		e.Document, g.Intent = compact.Bytes(), &intent
		if g, err = o.Parked.Replace(ctx, g, e); !fault.Is(err, fault.PreconditionFailed) {
			return g, err
		}
	}
	return g, fmt.Errorf("the parked events of key %s change all the time: %w", key, err)
}

// parkedEvent returns the gate of a key and one of its first parked events.
func (o *Operator) parkedEvent(ctx context.Context, key, id string) (g relay.Gate, e relay.ParkedEvent, err error) {
	if o.store.ParkedDecoder == nil {
		return g, e, fault.New(fault.Conflict, "not_editable", "parked events of this store are corrected with its own tools")
	}
	// The gate is read first: if the events change after that, so does its version.
	if g, err = o.Parked.Gate(ctx, key); err != nil {
		return g, e, err
	}
	events, err := o.Parked.First(ctx, key, comparedEvents, shownBytes)
	if err != nil {
		return g, e, err
	}
	if i := slices.IndexFunc(events, func(e relay.ParkedEvent) bool { return e.ID == id }); i >= 0 {
		return g, events[i], nil
	}
	return g, e, fault.Missing("event", id)
}

// versionOf returns the version of a parked document.
func versionOf(document []byte) string {
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:8])
}

// trouble returns the reason for which a document is not the event with that id and key.
func (o *Operator) trouble(key, id string, document []byte) string {
	d := o.store.Decoder
	if o.ofConsumer {
		d = o.store.ParkedDecoder
	}
	m, isEvent, err := d.Decode(bytes.Clone(document))
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
