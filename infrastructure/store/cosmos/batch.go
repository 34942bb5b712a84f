package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/google/uuid"

	"feedbox/domain/fault"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/internal/jsontext"
)

// Batch is one transaction of an outbox. All methods except Commit only add operations and
// return the batch. It serves one goroutine. The zero Batch and nil fail with an error.
type Batch struct {
	documents ContainerContext
	key       string
	keyMember string
	maxKey    int
	events    []Event // encoded by Commit, because the trace context comes from its context
	sealed    bool    // Commit was called: a repeated Commit must send the same
	committed bool
	faults    []error
}

// Event is an event that a batch emits.
type Event struct {
	// Action names the event's type; it is the subject of the message. Required.
	Action string
	// Data encodes to a JSON object without the members that all events have (see
	// document.JSONEvent), nor members that differ from those of this event in upper and lower case only. Nil: no
	// members. The whole document of the event has at most 2,031,616
	// bytes, otherwise Commit fails with fault.TooLarge (code "event_too_large").
	Data any
	// ID is the message id. It must be unique and never be reused. Default: a new one.
	ID uuid.UUID
	// Sequence counts the events of the key from 1 without a gap, so that the relay and the
	// inbox can detect missing events. Version is the version of the changed object. 0: not
	// known.
	Sequence, Version int64
	// At is the time of the event. Default: the time of the commit.
	At time.Time
}

// Committed is the result of a batch.
type Committed struct {
	// ETags are the ETags of the documents that were put, by their ids, quoted as in HTTP. An
	// ETag is empty if the answer was lost and the document has been changed since.
	ETags map[string]string
	// SessionToken makes a later read see this commit. It may be empty.
	SessionToken string
}

// Put adds a write of doc: it replaces the document with this ETag, or creates one if etag is
// empty. doc must encode to a JSON object with an id, a string; a missing partition key is added.
// If the stored ETag differs, Commit fails with fault.PreconditionFailed; if the id of a new
// document exists, with fault.Conflict.
func (b *Batch) Put(doc any, etag string) *Batch {
	if !b.ready() {
		return b.orNew()
	}
	id, body, err := b.encode(doc)
	if err != nil {
		return b.fail("put", err)
	}
	v := verbCreate
	if etag != "" {
		v = verbReplace
	}
	return b.fail("put", b.documents.track(v, DataObject{ID: id, PartitionKey: b.key, ETag: azcore.ETag(etag)}, body))
}

// Delete adds the deletion of a document. The ETag is required.
func (b *Batch) Delete(id, etag string) *Batch {
	if !b.ready() {
		return b.orNew()
	}
	return b.fail("delete", b.documents.track(verbDelete, DataObject{ID: id, PartitionKey: b.key, ETag: azcore.ETag(etag)}, nil))
}

// Emit adds an event with that action and data.
func (b *Batch) Emit(action string, data any) *Batch {
	return b.EmitEvent(Event{Action: action, Data: data})
}

// EmitEvent adds an event. Events keep the order of the calls: each gets its ordinal in the
// transaction, by which the relay sorts them.
func (b *Batch) EmitEvent(e Event) *Batch {
	if !b.ready() {
		return b.orNew()
	}
	if e.Action == "" || e.Sequence < 0 || e.Version < 0 {
		return b.fail("emit", fmt.Errorf("the event %q needs an action, and a sequence and a version from 1 or 0 for none", e.Action))
	}
	if n := utf8.RuneCountInString(b.key); b.maxKey > 0 && n > b.maxKey && len(b.events) == 0 {
		b.fail("emit", fault.New(fault.Invalid, "key_too_long", fmt.Sprintf("the key has %d characters, and the broker accepts %d: use a shorter one, or set OutboxOptions.MaxKeyLength to the limit of your broker", n, b.maxKey)))
	}
	if e.ID == uuid.Nil {
		e.ID = uuid.New()
	}
	if slices.ContainsFunc(b.events, func(other Event) bool { return other.ID == e.ID }) {
		return b.fail("emit", fmt.Errorf("the event %s is emitted already", e.ID))
	}
	b.events = append(b.events, e)
	return b
}

// After makes the session token of the answer also cover an earlier token of the caller. With several
// calls it covers all of them.
func (b *Batch) After(sessionToken string) *Batch {
	if !b.ready() {
		return b.orNew()
	}
	return b.fail("after", b.documents.session.Add(sessionToken))
}

// Commit stores all operations, everything or nothing, by ContainerContext.Save. A Commit that
// failed may be called again and sends the same.
//
// Errors: those of the earlier calls, and faults: Conflict, PreconditionFailed, NotFound,
// TooLarge, Throttled, Unavailable (CodeOutcomeUnknown if no attempt got an answer), Internal.
func (b *Batch) Commit(ctx context.Context) (Committed, error) {
	if b == nil || b.documents.container == nil {
		b = b.orNew()
	}
	b.sealed = true
	switch {
	case len(b.faults) > 0:
		return Committed{}, errors.Join(b.faults...)
	case b.committed:
		return Committed{}, errors.New("cosmos: commit: the batch is committed already; begin another")
	}
	if err := b.addEvents(ctx); err != nil {
		return Committed{}, fmt.Errorf("cosmos: emit: %w", err)
	}
	if len(b.documents.operations) == 0 {
		return Committed{}, errors.New("cosmos: commit: nothing was put, deleted or emitted")
	}
	saved, err := b.documents.Save(ctx)
	if err != nil {
		return Committed{}, err
	}
	b.committed = true
	done := Committed{ETags: make(map[string]string, len(saved)), SessionToken: b.documents.session.String()}
	for i, o := range saved {
		if op := b.documents.operations[i]; op.body != nil && !op.isEvent() {
			done.ETags[o.ID] = string(o.ETag)
		}
	}
	return done, nil
}

// addEvents adds the events to the transaction, once.
func (b *Batch) addEvents(ctx context.Context) error {
	for i := range b.events {
		e := &b.events[i]
		if e.At.IsZero() {
			e.At = time.Now()
		}
		o, err := b.eventDocument(ctx, e, i+1)
		if err == nil {
			err = b.documents.track(verbCreate, o, nil)
		}
		if err != nil {
			return err
		}
	}
	b.events = nil
	return nil
}

func (b *Batch) eventDocument(ctx context.Context, e *Event, ordinal int) (DataObject, error) {
	data := []byte{'{'}
	if e.Data != nil {
		written := []string{"action", "id", "createdAt", "ordinal", "schemaVersion", "traceparent"}
		if e.Version > 0 {
			written = append(written, "aggregateVersion")
		}
		if e.Sequence > 0 {
			written = append(written, "sequence")
		}
		var err error
		if data, err = document.AppendMembers(data, e.Data, document.EventMembers, written); err != nil {
			return DataObject{}, fmt.Errorf("%s: %w", e.Action, err)
		}
	}
	w := jsontext.Extend(data)
	w.Text("action", e.Action)
	w.UUID("id", e.ID)
	w.Time("createdAt", e.At)
	if e.Version > 0 {
		w.Integer("aggregateVersion", e.Version)
	}
	if e.Sequence > 0 {
		w.Integer("sequence", e.Sequence)
	}
	w.Integer("ordinal", int64(ordinal))
	w.Integer("schemaVersion", document.EventSchemaVersion)
	w.TextIfAny("traceparent", b.documents.options.Traceparent(ctx))
	w.End()
	data, err := w.Done()
	if err == nil {
		err = b.documents.options.CheckEvent(e.ID, data)
	}
	return DataObject{ID: e.ID.String(), PartitionKey: b.key, KeyMember: b.keyMember, Type: document.TypeEvent, Data: data, TTL: seconds(b.documents.options.EventTTL)}, err
}

// encode returns the id of a document and its JSON text with the partition key.
func (b *Batch) encode(doc any) (id string, body []byte, err error) {
	text, err := json.Marshal(doc)
	if err != nil {
		return "", nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil || members == nil {
		return "", nil, fmt.Errorf("a %T is not encoded as an object", doc)
	}
	if json.Unmarshal(members["id"], &id) != nil || id == "" {
		return "", nil, fmt.Errorf("a %T has no member id that is a string", doc)
	}
	var key string
	switch raw, there := members[b.keyMember]; {
	case !there:
		w := jsontext.Extend(slices.Clone(text[:len(text)-1]))
		w.Text(b.keyMember, b.key)
		w.End()
		body, err = w.Done()
		return id, body, err
	case json.Unmarshal(raw, &key) != nil || key != b.key:
		return "", nil, fmt.Errorf("document %s: its %s is %s, the batch is in %q; use a batch for each key", id, b.keyMember, raw, b.key)
	}
	return id, text, nil
}

// fail adds the error of a call, if there is one.
func (b *Batch) fail(call string, err error) *Batch {
	if err != nil {
		b.faults = append(b.faults, fmt.Errorf("cosmos: %s: %w", call, err))
	}
	return b
}

// ready reports whether the batch accepts operations: it was begun by an outbox and is not
// committed yet.
func (b *Batch) ready() bool { return b != nil && b.documents.container != nil && !b.sealed }

// orNew adds the error of a batch that is not ready and returns the batch, or a new one for nil.
func (b *Batch) orNew() *Batch {
	if b == nil {
		b = &Batch{}
	}
	switch {
	case b.sealed:
		b.fail("batch", errors.New("it accepts no operations after Commit; begin another"))
	case len(b.faults) == 0:
		b.fail("batch", errors.New("it was not begun by Outbox.Batch"))
	}
	return b
}
