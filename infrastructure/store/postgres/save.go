package postgres

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

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

type statement struct {
	text strings.Builder
	args []any
}

// add appends parts, which alternate between text and arguments.
func (s *statement) add(parts ...any) {
	for i, part := range parts {
		if i%2 == 0 {
			s.text.WriteString(part.(string))
			continue
		}
		s.args = append(s.args, part)
		s.text.WriteString("$" + strconv.Itoa(len(s.args)))
	}
}

// changing returns the statement of a commit. It is one statement, and so one transaction and one
// round trip: the other records are stored only if the aggregate was changed, and an error of any
// part rolls back everything.
func changing(c *recordstore.Change) *statement {
	var expires pgtype.Interval // never
	if c.Deleted {
		expires = interval(c.DeletedTTL)
	}
	s := &statement{}
	switch {
	case c.Unchanged:
		s.add(`WITH changed AS (SELECT version FROM feedbox.aggregates WHERE id = `, c.ID, ` AND type = `, c.Type, ` AND version = `, c.Before.Version, ` AND `+live+`)`)
	case c.Before.Version == 0:
		s.add(`WITH changed AS (INSERT INTO feedbox.aggregates AS a (id, type, version, sequence, deleted, recurs, data, expires_at) VALUES (`, c.ID,
			`, `, c.Type, `, `, c.After.Version, `, `, c.Commit.Sequence, `, `, c.Deleted, `, `, c.Recurs, `, `, string(c.Data), `, now() + `, expires, `::interval)`+
				// An expired row is replaced. The new row continues its version if the id recurs.
				` ON CONFLICT (id) DO UPDATE SET type = EXCLUDED.type, version = EXCLUDED.version, sequence = EXCLUDED.sequence, deleted = EXCLUDED.deleted,`+
				` recurs = EXCLUDED.recurs, data = EXCLUDED.data, expires_at = EXCLUDED.expires_at`+
				` WHERE a.expires_at <= now() AND (NOT a.recurs OR a.version < EXCLUDED.version) RETURNING a.version)`)
	default:
		s.add(`WITH changed AS (UPDATE feedbox.aggregates SET version = `, c.After.Version, `, sequence = `, c.Commit.Sequence, `, deleted = `, c.Deleted,
			`, recurs = `, c.Recurs, `, data = `, string(c.Data), `, expires_at = now() + `, expires, `::interval WHERE id = `, c.ID, ` AND type = `, c.Type,
			` AND version = `, c.Before.Version, ` AND `+live+` RETURNING version)`)
	}
	if !c.Unchanged {
		ids, documents := make([]string, len(c.Events)), make([]string, len(c.Events))
		for i, e := range c.Events {
			ids[i], documents[i] = e.ID, recordstore.EventDocument(e)
		}
		key := c.ID.String()
		s.add(`, stored AS (INSERT INTO feedbox.events (hash, key, id, document, expires_at) SELECT `, recordstore.Hash(key), `::int, `, key, `::text, e.id, e.document, now() + `,
			interval(c.EventTTL), `::interval FROM changed, unnest(`, ids, `::text[], `, documents, `::text[]) AS e (id, document))`)
	}
	if c.Audit != nil {
		s.add(`, audited AS (INSERT INTO feedbox.audits (aggregate_id, version, at, principal, events, expires_at) SELECT `, c.ID, `::uuid, `, c.Audit.Version, `::bigint, `,
			c.Audit.At, `::timestamptz, `, c.Audit.Principal, `::text, `, recordstore.EncodeAudited(c.Audit.Events), `::json, now() + `, interval(c.AuditTTL), `::interval FROM changed)`)
	}
	if r := c.Request; r != nil {
		s.add(`, noted AS (INSERT INTO feedbox.requests (aggregate_id, id, hash, command_id, created_at, version, expires_at) SELECT `, r.AggregateID, `::uuid, `, r.ID, `::text, `,
			r.Hash, `::text, `, r.CommandID, `::uuid, `, r.CreatedAt, `::timestamptz, `, r.Version, `::bigint, now() + `, interval(c.RequestTTL), `::interval FROM changed)`)
	}
	s.add(` SELECT version FROM changed WHERE ` + durable)
	return s
}
