package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"feedbox/application/command"
	"feedbox/domain/fault"
)

// save runs the statement of a commit that leaves version, and reports whether that is
// still the current one.
//
// How an outcome becomes certain: each attempt sends the same statement.
//
//	          ┌── no answer: wait, again ────────────────────────┐
//	          ▼                                                  │
//	send, one attempt ──a row──▶ done                            │
//	     │                                                       │
//	     ├── not now (deadlock, shutting down): wait, again ─────┤
//	     ├── refused, and an earlier attempt had no answer:      │
//	     │      read back: our event or note is there ──▶ done   │
//	     │                 no answer ────────────────────────────┘
//	     └── refused otherwise ──▶ the fault: nothing is or will be stored
//
// The last line holds also for an attempt that is still on its way when a later one is
// refused. What refuses the later one, another version or a taken id, refuses the earlier
// one too: versions never come back. And if a later attempt succeeds, an earlier one that
// arrives afterwards finds another version.
func (w *UnitOfWork[A]) save(ctx context.Context, s *statement, version int64) (current bool, err error) {
	what := fmt.Sprintf("save %s %s with %d events", w.of.kind.Noun, w.id, len(w.events))
	unknown := false // some attempt may have stored it
	for attempt := 1; ; attempt++ {
		err := w.of.db.used(w.send(ctx, s))
		if err == nil {
			return true, nil
		}
		refusal := w.refusal(err)
		if refusal != nil && unknown {
			own, current, backErr := w.readBack(ctx, version)
			if backErr == nil && own {
				return current, nil
			}
			if err = backErr; err == nil {
				return false, refusal
			}
		} else if refusal != nil {
			return w.again(ctx, refusal, s, version)
		}
		unknown = unknown || ambiguous(err)
		failed := asFault(what, err)
		if attempt < w.of.options.Attempts && (unknown || transient(err)) && pause(ctx, w.of.options.Backoff<<(attempt-1)) == nil {
			continue
		}
		if unknown {
			return false, fault.Wrap(fault.Unavailable, CodeOutcomeUnknown, "the store did not answer; the change may have been made", failed)
		}
		return false, failed
	}
}

// send makes one attempt.
func (w *UnitOfWork[A]) send(ctx context.Context, s *statement) error {
	if w.of.options.AttemptTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.of.options.AttemptTimeout)
		defer cancel()
	}
	var stored int64
	return w.of.db.pool.QueryRow(ctx, s.text.String(), s.args...).Scan(&stored)
}

// errNoted says that a request of that id was answered before.
var errNoted = errors.New("the request is noted already")

// refusal is the fault for an attempt that the state of the database has refused, nil for
// another failure.
func (w *UnitOfWork[A]) refusal(err error) error {
	reply, _ := errors.AsType[*pgconn.PgError](err)
	switch {
	case errors.Is(err, pgx.ErrNoRows) && w.version == 0:
		return fault.New(fault.Conflict, "", "there is a "+w.of.kind.Noun+" of that id already")
	case errors.Is(err, pgx.ErrNoRows):
		return w.of.kind.ChangedByAnother()
	case code(err) == uniqueViolation && reply.ConstraintName == "requests_pkey":
		return fault.Wrap(fault.Conflict, "", "the request was answered before", errors.Join(errNoted, err))
	case code(err) == uniqueViolation:
		return fault.Wrap(fault.Conflict, "", "what is to be stored is there already", err)
	}
	return nil
}

// again deals with a refusal that is not ours: a note that has expired is taken away and
// the commit sent again; an aggregate that vanished is told from one that was changed.
func (w *UnitOfWork[A]) again(ctx context.Context, refusal error, s *statement, version int64) (bool, error) {
	db := w.of.db
	if errors.Is(refusal, errNoted) {
		gone, err := db.pool.Exec(ctx, `DELETE FROM requests WHERE aggregate_id = $1 AND id = $2 AND expires_at <= now()`, w.request.AggregateID, w.request.ID)
		if db.used(err) != nil || gone.RowsAffected() == 0 {
			return false, refusal
		}
		return w.save(ctx, s, version)
	}
	if fault.Is(refusal, fault.PreconditionFailed) {
		if _, _, err := w.of.read(ctx, w.id); fault.Is(err, fault.NotFound) {
			return false, err
		}
	}
	return false, refusal
}

// readBack finds out whether an earlier attempt was stored: its first event, or its note,
// is there then. Current says that nobody has changed the aggregate since.
func (w *UnitOfWork[A]) readBack(ctx context.Context, version int64) (own, current bool, err error) {
	event, note := "", uuid.Nil
	if len(w.events) > 0 {
		event = w.events[0].id
	}
	var request command.Request
	if w.request != nil {
		request, note = *w.request, w.request.CommandID
	}
	err = w.of.db.used(w.of.db.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM events WHERE hash = $1 AND id = $2) OR EXISTS (SELECT FROM requests WHERE aggregate_id = $3 AND id = $4 AND command_id = $5),
		EXISTS (SELECT FROM aggregates WHERE id = $3 AND version = $6)`, hashOf(w.id.String()), event, w.id, request.ID, note, version).Scan(&own, &current))
	return own, current, err
}

// FindRequest implements command.Journal.
func (w *UnitOfWork[A]) FindRequest(ctx context.Context, aggregateID uuid.UUID, id string) (command.Request, error) {
	r := command.Request{ID: id, AggregateID: aggregateID}
	err := w.of.db.used(w.of.db.pool.QueryRow(ctx, `SELECT hash, command_id, created_at, version FROM requests WHERE aggregate_id = $1 AND id = $2 AND `+live, aggregateID, id).
		Scan(&r.Hash, &r.CommandID, &r.CreatedAt, &r.Version))
	if errors.Is(err, pgx.ErrNoRows) {
		return r, fault.Missing("request", id)
	}
	return r, asFault("read the note of request "+id, err)
}

// pause waits between a half and all of wait, and fails when ctx ends first.
func pause(ctx context.Context, wait time.Duration) error {
	if wait > 0 {
		wait = wait/2 + rand.N(wait/2+1)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
