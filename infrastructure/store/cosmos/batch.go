package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/google/uuid"

	"feedbox/infrastructure/store/cosmos/internal/store"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/internal/jsontext"
)

// Batch is one transaction of an outbox. Its methods but Commit only note what is to be
// done, and each returns the batch. It serves one goroutine. The zero Batch and nil fail
// with an error.
type Batch struct {
	documents ContainerContext
	key       string
	keyMember string
	events    []Event // written by Commit, which knows the context
	sealed    bool    // Commit was called: what is sent stays the same
	committed bool
	faults    []error
}

// Event is an event that a batch emits.
type Event struct {
	// Action names the event's type; it is the subject of the message. Required.
	Action string
	// Data encodes to a JSON object without members of the names that all events have (see
	// JSONEvent). Nil: there is no more to say.
	Data any
	// ID is unique and never used again: the message id. Default: a new one.
	ID uuid.UUID
	// Sequence counts the events of the key from 1 without a gap; Version is that of what
	// they happened to. Whoever knows them lets the relay and the inbox find what is missing.
	// 0: not known.
	Sequence, Version int64
	// At is when it happened. Default: when the batch is committed.
	At time.Time
}

// Committed says what a batch has left.
type Committed struct {
	// ETags are those of the documents that were put, by their ids, quoted as in HTTP. One
	// is empty when the commit was made but its answer was lost and the document has been
	// changed by another since.
	ETags map[string]string
	// SessionToken makes a later read see this commit. It may be empty.
	SessionToken string
}

// Put notes that doc is to be stored: in the place of the document that has this ETag, or as
// a new one if it is empty. Doc encodes to a JSON object with an id, a string; the partition
// key is added where it is not there. Another ETag fails Commit with
// fault.PreconditionFailed, an id that exists with fault.Conflict.
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

// Delete notes that the document is to be removed that has this ETag, which is required.
func (b *Batch) Delete(id, etag string) *Batch {
	if !b.ready() {
		return b.orNew()
	}
	return b.fail("delete", b.documents.track(verbDelete, DataObject{ID: id, PartitionKey: b.key, ETag: azcore.ETag(etag)}, nil))
}

// Emit notes an event of that action; data is that of Event.
func (b *Batch) Emit(action string, data any) *Batch {
	return b.EmitEvent(Event{Action: action, Data: data})
}

// EmitEvent is Emit for an event about which more is known. Events are in the order of the
// calls.
func (b *Batch) EmitEvent(e Event) *Batch {
	if !b.ready() {
		return b.orNew()
	}
	if e.Action == "" || e.Sequence < 0 || e.Version < 0 {
		return b.fail("emit", fmt.Errorf("the event %q needs an action, and a sequence and a version from 1 or 0 for none", e.Action))
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

// After makes the session token of the answer stand for what the caller has seen before, too.
func (b *Batch) After(sessionToken string) *Batch {
	if !b.ready() {
		return b.orNew()
	}
	var err error
	b.documents.session, err = store.ParseSession(sessionToken)
	return b.fail("after", err)
}

// Commit stores all that was noted, everything or nothing. How its outcome becomes certain
// says ContainerContext.Save; a Commit that failed may be called again and sends the same.
//
// Errors: what was wrong with the calls before, and faults: Conflict, PreconditionFailed,
// NotFound, TooLarge, Throttled, Unavailable (CodeOutcomeUnknown when no attempt gave an
// answer), Internal.
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

// addEvents puts the events into the transaction, once.
func (b *Batch) addEvents(ctx context.Context) error {
	for i := range b.events {
		e := &b.events[i]
		if e.At.IsZero() {
			e.At = time.Now()
		}
		o, err := b.eventDocument(ctx, e)
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

func (b *Batch) eventDocument(ctx context.Context, e *Event) (DataObject, error) {
	data := []byte{'{'}
	if e.Data != nil {
		var err error
		if data, err = document.AppendMembers(data, e.Data, document.EventMembers); err != nil {
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
	w.Integer("schemaVersion", document.EventSchemaVersion)
	w.TextIfAny("traceparent", b.documents.options.Traceparent(ctx))
	w.End()
	data, err := w.Done()
	return DataObject{ID: e.ID.String(), PartitionKey: b.key, KeyMember: b.keyMember, Type: document.TypeEvent, Data: data, TTL: seconds(b.documents.options.EventTTL)}, err
}

// encode returns the id of a document and its text, with the partition key in it.
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

// fail notes what is wrong with a call; nil is nothing.
func (b *Batch) fail(call string, err error) *Batch {
	if err != nil {
		b.faults = append(b.faults, fmt.Errorf("cosmos: %s: %w", call, err))
	}
	return b
}

// ready reports whether the batch can take more: an outbox has begun it, and it was not
// sent yet.
func (b *Batch) ready() bool { return b != nil && b.documents.container != nil && !b.sealed }

// orNew returns the batch itself, or in the place of none and the zero one a batch that
// fails.
func (b *Batch) orNew() *Batch {
	if b == nil {
		b = &Batch{}
	}
	switch {
	case b.sealed:
		b.fail("batch", errors.New("it takes no more once Commit was called; begin another"))
	case len(b.faults) == 0:
		b.fail("batch", errors.New("it was not begun by Outbox.Batch"))
	}
	return b
}
