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

// Events reads and replaces stored events. An expired event is not found. It is safe for
// concurrent use.
type Events struct {
	Store   Store
	Decoder relay.Decoder
}

// Event implements relay.Stored.
func (e Events) Event(ctx context.Context, key, id string) ([]byte, error) {
	stored, err := e.Store.Event(ctx, key, id)
	return stored.Document, err
}

// OfKey returns the stored events of a key in the order of their sequence numbers.
// Message.Index is the order in which they were read.
//
// Faults: Invalid (code "unsendable") for a malformed event, Unavailable.
func (e Events) OfKey(ctx context.Context, key string) ([]relay.StoredEvent, error) {
	found, err := e.Store.Events(ctx, key)
	if err != nil {
		return nil, err
	}
	var events []relay.StoredEvent
	for _, stored := range found {
		m, isEvent, err := e.Decoder.Decode(stored.Document)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, "unsendable", "an event of the key is malformed and cannot be sent", err)
		}
		if isEvent {
			m.Index, m.LSN = len(events), stored.LSN
			events = append(events, relay.StoredEvent{Message: m, StoredAt: stored.At.Truncate(time.Second)})
		}
	}
	slices.SortStableFunc(events, func(a, b relay.StoredEvent) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return events, nil
}

// Recent implements relay.Lister.
func (e Events) Recent(ctx context.Context, q relay.RecentQuery) (relay.RecentPage, error) {
	return e.Store.Recent(ctx, q, func(stored StoredEvent) relay.RecentEvent {
		m, isEvent, err := e.Decoder.Decode(stored.Document)
		m.ID, m.Key, m.LSN = stored.ID, stored.Key, stored.LSN
		listed := relay.RecentEvent{StoredEvent: relay.StoredEvent{Message: m, StoredAt: stored.At}}
		switch {
		case err != nil:
			listed.Trouble = err.Error()
		case !isEvent:
			listed.Trouble = "the document is no event: its type is another"
		}
		return listed
	})
}

// Editable returns the document of an event for an operator to correct, and its version, a
// digest of the document.
func (Events) Editable(raw []byte) (clean []byte, version string, err error) {
	if !json.Valid(raw) {
		return nil, "", fault.New(fault.Invalid, "", "the event is not JSON")
	}
	return raw, versionOf(raw), nil
}

func versionOf(document []byte) string {
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:])
}

// Replace replaces an event if it still has the version. The feed does not deliver it again.
// Faults: PreconditionFailed, NotFound.
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
		err = fault.New(fault.PreconditionFailed, "", "the event was changed in the meantime; read it again")
	}
	return err
}
