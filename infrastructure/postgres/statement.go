package postgres

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"feedbox/domain/aggregate"
)

// statement is one SQL statement with its arguments.
type statement struct {
	text strings.Builder
	args []any
}

// add appends text and arguments in turn.
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

// changing is the statement of a commit. It is one statement, and so one transaction and
// one round trip: what follows the change of the aggregate is stored if that took place,
// and an error of any part undoes all.
func (w *UnitOfWork[A]) changing(commit aggregate.Commit) (*statement, error) {
	a, kind := w.aggregate, w.of.kind
	data, err := kind.Data(a, commit)
	if err != nil {
		return nil, err
	}
	var expires *float64
	if a.Deleted() {
		expires = seconds(kind.DeletedTTL)
	}
	s := &statement{}
	const after = `now() + make_interval(secs => `
	if commit.Create {
		s.add(`WITH changed AS (INSERT INTO aggregates AS a (id, type, version, sequence, deleted, recurs, data, expires_at) VALUES (`, w.id,
			`, `, kind.Type, `, `, commit.Version, `, `, commit.Sequence, `, `, a.Deleted(), `, `, a.Recurs(), `, `, string(data), `, `+after, expires, `::float8))`+
				// A row that has expired is there no more, but what comes in its place continues it.
				` ON CONFLICT (id) DO UPDATE SET type = EXCLUDED.type, version = EXCLUDED.version, sequence = EXCLUDED.sequence, deleted = EXCLUDED.deleted,`+
				` recurs = EXCLUDED.recurs, data = EXCLUDED.data, expires_at = EXCLUDED.expires_at`+
				` WHERE a.expires_at <= now() AND (NOT a.recurs OR a.version < EXCLUDED.version) RETURNING a.version)`)
	} else {
		s.add(`WITH changed AS (UPDATE aggregates SET version = `, commit.Version, `, sequence = `, commit.Sequence, `, deleted = `, a.Deleted(),
			`, recurs = `, a.Recurs(), `, data = `, string(data), `, expires_at = `+after, expires, `::float8) WHERE id = `, w.id, ` AND type = `, kind.Type,
			` AND version = `, w.version, ` AND `+live+` RETURNING version)`)
	}
	ids, documents := make([]string, len(w.events)), make([]string, len(w.events))
	for i, e := range w.events {
		ids[i], documents[i] = e.id, e.document
	}
	key := w.id.String()
	s.add(`, stored AS (INSERT INTO events (hash, key, id, document, expires_at) SELECT `, hashOf(key), `::int, `, key, `::text, e.id, e.document, `+after,
		seconds(w.of.options.EventTTL), `::float8) FROM changed, unnest(`, ids, `::text[], `, documents, `::text[]) AS e (id, document))`)
	if w.audit != nil {
		events, err := json.Marshal(auditedOf(w.audit.Events))
		if err != nil {
			return nil, fmt.Errorf("encode audit entry %d of %s: %w", w.audit.Version, w.id, err)
		}
		s.add(`, audited AS (INSERT INTO audits (aggregate_id, version, at, principal, events, expires_at) SELECT `, w.id, `::uuid, `, w.audit.Version, `::bigint, `,
			w.audit.At, `::timestamptz, `, w.audit.Principal, `::text, `, string(events), `::json, `+after, seconds(w.of.options.AuditTTL), `::float8) FROM changed)`)
	}
	w.addNotes(s)
	return s, nil
}

// addNotes adds the note about the request and ends the statement.
func (w *UnitOfWork[A]) addNotes(s *statement) {
	if r := w.request; r != nil {
		s.add(`, noted AS (INSERT INTO requests (aggregate_id, id, hash, command_id, created_at, version, expires_at) SELECT `, r.AggregateID, `::uuid, `, r.ID, `::text, `,
			r.Hash, `::text, `, r.CommandID, `::uuid, `, r.CreatedAt, `::timestamptz, `, r.Version, `::bigint, now() + make_interval(secs => `, seconds(w.of.options.RequestTTL), `::float8) FROM changed)`)
	}
	s.add(` SELECT version FROM changed`)
}
