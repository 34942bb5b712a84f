package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

// Events reads events where they were committed. It is safe for concurrent use.
type Events struct {
	DB      *DB
	Decoder relay.Decoder
}

var _ relay.Stored = Events{}

// Event implements relay.Stored.
func (e Events) Event(ctx context.Context, key, id string) (raw []byte, err error) {
	err = e.DB.used(e.DB.pool.QueryRow(ctx, `SELECT document FROM events WHERE hash = $1 AND id = $2 AND key = $3`, hashOf(key), id, key).Scan(&raw))
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fault.Missing("event", id)
	}
	return raw, asFault("read event "+id+" of key "+key, err)
}

// OfKey returns the events of a key that are still stored, in the order of their sequence
// numbers. Message.Index is their place as they were read.
//
// Faults: Invalid (code "unsendable") for one that is no event, Unavailable.
func (e Events) OfKey(ctx context.Context, key string) ([]relay.StoredEvent, error) {
	rows, _ := e.DB.pool.Query(ctx, `SELECT document, stored_at FROM events WHERE hash = $1 AND key = $2 ORDER BY xid`, hashOf(key), key)
	var events []relay.StoredEvent
	var raw []byte
	var one relay.StoredEvent
	_, err := pgx.ForEachRow(rows, []any{&raw, &one.StoredAt}, func() (err error) {
		at, isEvent := one.StoredAt, false
		if one.Message, isEvent, err = e.Decoder.Decode(raw); err != nil {
			return fault.Wrap(fault.Invalid, "unsendable", "an event of the key cannot be sent as it is", err)
		}
		raw = nil // the message has its memory
		if isEvent {
			one.Index, one.StoredAt = len(events), at
			events = append(events, one)
		}
		return nil
	})
	if e.DB.used(err) != nil {
		return nil, asFault("read the events of key "+key, err)
	}
	slices.SortStableFunc(events, func(a, b relay.StoredEvent) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return events, nil
}
