package postgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/rows"
)

// Events reads events where they were committed. It is safe for concurrent use.
type Events struct {
	DB      *DB
	Decoder relay.Decoder
}

var _ relay.Stored = Events{}

// Event implements relay.Stored.
func (e Events) Event(ctx context.Context, key, id string) (raw []byte, err error) {
	err = e.DB.used(e.DB.pool.QueryRow(ctx, `SELECT document FROM events WHERE hash = $1 AND id = $2 AND key = $3`, rows.Hash(key), id, key).Scan(&raw))
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
	found, _ := e.DB.pool.Query(ctx, `SELECT document, stored_at FROM events WHERE hash = $1 AND key = $2 ORDER BY xid`, rows.Hash(key), key)
	var events []relay.StoredEvent
	var raw []byte
	var one relay.StoredEvent
	_, err := pgx.ForEachRow(found, []any{&raw, &one.StoredAt}, func() (err error) {
		at := one.StoredAt
		var isEvent bool
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

// Editable returns the document as it is, and its version: that of an event is its content.
func (Events) Editable(raw []byte) (clean []byte, version string, err error) {
	if !json.Valid(raw) {
		return nil, "", fault.New(fault.Invalid, "", "the event is no JSON")
	}
	sum := sha256.Sum256(raw)
	return raw, hex.EncodeToString(sum[:]), nil
}

// Replace puts document in place of an event, if its version is still that; else
// PreconditionFailed, or NotFound. The feed does not show it again.
func (e Events) Replace(ctx context.Context, key, id string, document []byte, version string) error {
	done, err := e.DB.pool.Exec(ctx, `UPDATE events SET document = $4 WHERE hash = $1 AND id = $2 AND key = $3 AND encode(sha256(convert_to(document, 'UTF8')), 'hex') = $5`,
		rows.Hash(key), id, key, string(document), version)
	if e.DB.used(err) != nil {
		return asFault("replace event "+id+" of key "+key, err)
	}
	if done.RowsAffected() == 1 {
		return nil
	}
	if _, err := e.Event(ctx, key, id); err != nil {
		return err
	}
	return fault.New(fault.PreconditionFailed, "", "the event was changed by somebody else; read it again")
}
