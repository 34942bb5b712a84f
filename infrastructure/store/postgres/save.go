package postgres

import (
	"cmp"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"feedbox/application/command"
	"feedbox/infrastructure/store/recordstore"
)

// Save implements recordstore.Store.
func (r Records) Save(ctx context.Context, c *recordstore.Change) error {
	s := changing(c)
	for {
		var stored int64
		err := r.DB.used(r.DB.queryRow(ctx, s.text.String(), s.args...).Scan(&stored))
		refused := refusal(c, err)
		if refused == nil {
			return asFault("save", err)
		}
		if !errors.Is(refused, recordstore.ErrNoted) {
			return refused
		}
		gone, err := r.DB.exec(ctx, `DELETE FROM feedbox.requests WHERE aggregate_id = $1 AND id = $2 AND expires_at <= now()`, c.Request.AggregateID, c.Request.ID)
		if r.DB.used(err) != nil || gone.RowsAffected() == 0 { // the note has not expired
			return errors.Join(refused, asFault("delete an expired request", err))
		}
	}
}

// refusal returns the reason why the stored records refused a change; nil for another failure.
func refusal(c *recordstore.Change, err error) error {
	reply, _ := errors.AsType[*pgconn.PgError](err)
	switch none := errors.Is(err, pgx.ErrNoRows); {
	case none && c.Before.Version > 0:
		return recordstore.ErrChanged
	case code(err) == uniqueViolation && reply.ConstraintName == "requests_pkey":
		return recordstore.ErrNoted
	case none, code(err) == uniqueViolation:
		return recordstore.ErrExists
	}
	return nil
}

// Saved implements recordstore.Store.
func (r Records) Saved(ctx context.Context, c *recordstore.Change) (own, current bool, err error) {
	var event string
	if len(c.Events) > 0 {
		event = c.Events[0].ID
	}
	request := cmp.Or(c.Request, &command.Request{})
	err = r.DB.row(ctx, "read back a change", nil, []any{&own, &current}, `SELECT EXISTS (SELECT FROM feedbox.events WHERE hash = $1 AND id = $2) OR EXISTS (SELECT FROM feedbox.requests WHERE aggregate_id = $3 AND id = $4 AND command_id = $5),
		EXISTS (SELECT FROM feedbox.aggregates WHERE id = $3 AND version = $6)`, recordstore.Hash(c.ID.String()), event, c.ID, request.ID, request.CommandID, c.After.Version)
	return own, current, err
}
