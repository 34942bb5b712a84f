package recordstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

// Events reads events where they were committed, and puts corrected ones in their place. One
// that has expired is there no more. It is safe for concurrent use.
type Events struct {
	Store   Store
	Decoder relay.Decoder
}

var _ relay.Stored = Events{}

// Event implements relay.Stored.
func (e Events) Event(ctx context.Context, key, id string) ([]byte, error) {
	stored, err := e.Store.Event(ctx, key, id)
	return stored.Document, err
}

// OfKey returns the events of a key that are still stored, in the order of their sequence
// numbers. Message.Index is their place as they were read.
//
// Faults: Invalid (code "unsendable") for one that is no event, Unavailable.
func (e Events) OfKey(ctx context.Context, key string) ([]relay.StoredEvent, error) {
	found, err := e.Store.Events(ctx, key)
	if err != nil {
		return nil, err
	}
	var events []relay.StoredEvent
	for _, stored := range found {
		m, isEvent, err := e.Decoder.Decode(stored.Document)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, "unsendable", "an event of the key cannot be sent as it is", err)
		}
		if isEvent {
			m.Index = len(events)
			events = append(events, relay.StoredEvent{Message: m, StoredAt: stored.At.Truncate(time.Second)})
		}
	}
	slices.SortStableFunc(events, func(a, b relay.StoredEvent) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return events, nil
}

// Editable returns the document of an event as a person may correct it, as it is, and its
// version: its content.
func (Events) Editable(raw []byte) (clean []byte, version string, err error) {
	if !json.Valid(raw) {
		return nil, "", fault.New(fault.Invalid, "", "the event is no JSON")
	}
	return raw, versionOf(raw), nil
}

func versionOf(document []byte) string {
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:])
}

// Replace puts document in place of an event, if its version is still that; else
// PreconditionFailed, or NotFound. The feed does not show it again.
func (e Events) Replace(ctx context.Context, key, id string, document []byte, version string) error {
	stored, err := e.Store.Event(ctx, key, id)
	if err != nil {
		return err
	}
	replaced := versionOf(stored.Document) == version
	if replaced {
		replaced, err = e.Store.ReplaceEvent(ctx, key, id, stored, document)
	}
	if err == nil && !replaced {
		err = fault.New(fault.PreconditionFailed, "", "the event was changed by somebody else; read it again")
	}
	return err
}
