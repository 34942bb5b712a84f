package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"feedbox/application/relay"
)

// closingData and intentData are the stored forms of why a gate is closed and of what is
// wanted of it.
type closingData struct {
	Event  string    `json:"event"`
	Reason string    `json:"reason"`
	Error  string    `json:"error,omitempty"`
	At     time.Time `json:"at"`
	Auto   bool      `json:"auto,omitempty"`

	Progress relay.Progress `json:"-"` // the gate has it
}

type intentData struct {
	Verb  relay.Verb `json:"verb"`
	Event string     `json:"event,omitempty"`
	By    string     `json:"by,omitempty"`
	Note  string     `json:"note,omitempty"`
	At    time.Time  `json:"at"`

	FromStore bool `json:"fromStore,omitempty"`
}

// encodeIntent returns an intent as it is stored; nil is none.
func encodeIntent(i *relay.Intent) (*string, error) {
	if i == nil {
		return nil, nil //nolint:nilnil // none
	}
	raw, err := json.Marshal((*intentData)(i))
	text := string(raw)
	return &text, err
}

func decodeIntent(raw []byte) (*relay.Intent, error) {
	if raw == nil {
		return nil, nil //nolint:nilnil // none
	}
	var d intentData
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("decode what is wanted: %w", err)
	}
	return (*relay.Intent)(&d), nil
}

const gateColumns = `key, version, closing, intent, progress_sequence, progress_lsn, events, last, sequence, attempts, error, tried_at`

func scanGate(row pgx.CollectableRow) (g relay.Gate, err error) {
	var version int64
	var closing, intent []byte
	var tried *time.Time
	if err := row.Scan(&g.Key, &version, &closing, &intent, &g.Progress.Sequence, &g.Progress.LSN, &g.Events, &g.Last, &g.Sequence, &g.Attempts, &g.Error, &tried); err != nil {
		return g, err
	}
	g.Version = strconv.FormatInt(version, 10)
	if tried != nil {
		g.TriedAt = tried.UTC()
	}
	var why closingData
	if err := json.Unmarshal(closing, &why); err != nil {
		return g, fmt.Errorf("decode why the gate of key %s is closed: %w", g.Key, err)
	}
	g.Closing = relay.Closing(why)
	g.Intent, err = decodeIntent(intent)
	return g, err
}

// putGate stores a gate whose row is locked, under a new version.
func putGate(ctx context.Context, tx pgx.Tx, g relay.Gate) (relay.Gate, error) {
	closing, err := json.Marshal(closingData(g.Closing))
	if err != nil {
		return g, err
	}
	intent, err := encodeIntent(g.Intent)
	if err != nil {
		return g, err
	}
	var tried *time.Time
	if !g.TriedAt.IsZero() {
		tried = &g.TriedAt
	}
	var version int64
	err = tx.QueryRow(ctx, `UPDATE gates SET version = nextval('tags'), closing = $2, wanted = $3, intent = $4, progress_sequence = $5, progress_lsn = $6, events = $7, last = $8,
		sequence = $9, attempts = $10, error = $11, tried_at = $12 WHERE key = $1 RETURNING version`,
		g.Key, string(closing), g.Wanted() != nil, intent, g.Progress.Sequence, g.Progress.LSN, g.Events, g.Last, g.Sequence, g.Attempts, g.Error, tried).Scan(&version)
	g.Version = strconv.FormatInt(version, 10)
	return g, err
}

const parkedColumns = `key, id, position, action, document, lsn, sequence, reason, error, attempts, parked_at`

func parkedFields(e *relay.ParkedEvent) []any {
	return []any{&e.Key, &e.ID, &e.Position, &e.Action, &e.Document, &e.LSN, &e.Sequence, &e.Reason, &e.Error, &e.Attempts, &e.ParkedAt}
}

func scanParked(row pgx.CollectableRow) (e relay.ParkedEvent, err error) {
	err = row.Scan(parkedFields(&e)...)
	e.ParkedAt = e.ParkedAt.UTC()
	return e, err
}
