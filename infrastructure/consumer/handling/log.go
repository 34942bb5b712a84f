package handling

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"feedbox/infrastructure/consumer"
)

// repeatPause is the time in which a warning with the same reason is logged once.
const repeatPause = time.Minute

// maxReasons bounds the memory for reasons, some of which come from handlers.
const maxReasons = 1000

// droppedByPolicy is logged for each event, because nothing else names an event that a policy drops.
const droppedByPolicy = "refused event dropped by the policy of its action"

// throttle is a slog.Handler that passes warnings and errors with the same message and reason once in
// repeatPause, with the number of those that it has dropped before. A broker that is down would
// otherwise add a line for each attempt of each receiver.
type throttle struct {
	slog.Handler
	lines *lines
}

type lines struct {
	mu   sync.Mutex
	last map[string]line // by message and reason
}

type line struct {
	at      time.Time
	dropped int
}

func newThrottle(next slog.Handler) slog.Handler {
	return throttle{next, &lines{last: make(map[string]line)}}
}

// Handle implements slog.Handler.
func (h throttle) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn || r.Message == droppedByPolicy {
		return h.Handler.Handle(ctx, r)
	}
	key := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "reason" {
			key += "\x00" + a.Value.String()
		}
		return true
	})
	dropped, pass := h.lines.add(key, r.Time)
	if !pass {
		return nil
	}
	if dropped > 0 {
		r.AddAttrs(slog.Int("repeated", dropped))
	}
	return h.Handler.Handle(ctx, r)
}

func (l *lines) add(key string, at time.Time) (dropped int, pass bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, known := l.last[key]
	if known && at.Sub(last.at) < repeatPause {
		l.last[key] = line{last.at, last.dropped + 1}
		return 0, false
	}
	if len(l.last) >= maxReasons {
		clear(l.last)
	}
	l.last[key] = line{at: at}
	return last.dropped, true
}

// WithAttrs implements slog.Handler.
func (h throttle) WithAttrs(attrs []slog.Attr) slog.Handler {
	return throttle{h.Handler.WithAttrs(attrs), h.lines}
}

// WithGroup implements slog.Handler.
func (h throttle) WithGroup(name string) slog.Handler {
	return throttle{h.Handler.WithGroup(name), h.lines}
}

// Advice is the reason of a failure to receive, and what to do about it.
type Advice struct{ Reason, Next string }

// NotReceived logs a failure to receive from an entity, with the advice of the kit or, after a failure
// of the network, to check the address.
func (r *Runner) NotReceived(ctx context.Context, entity string, err error, failures int) {
	a := Advice{"unknown", "see the error; the consumer tries again"}
	var network net.Error // also of a name that cannot be resolved
	if errors.As(err, &network) {
		a = Advice{"unreachable", "check that the broker runs, and its address, port and firewall rules"}
	}
	if r.Advise != nil {
		if given := r.Advise(err); given.Reason != "" {
			a = given
		}
	}
	r.Log.ErrorContext(ctx, "receiving failed", "source", entity, "reason", a.Reason, "error", err, "next", a.Next, "failures", failures)
}

// ReceivedAgain logs the end of a series of failures.
func (r *Runner) ReceivedAgain(ctx context.Context, entity string, failures int) {
	if failures > 0 {
		r.Log.InfoContext(ctx, "receiving again", "source", entity, "failures", failures)
	}
}

// logOutcome logs outcomes that an operator should know. It contains no personal data: keys are the ids
// of aggregates.
func (r *Runner) logOutcome(ctx context.Context, o *consumer.Outcome) {
	warn := func(message string, more ...any) {
		if o.Err != nil {
			more = append(more, "reason", errorType(o.Err), "error", o.Err)
		}
		event := slog.Group("event", "id", o.Event.ID, "key", o.Event.Key, "action", o.Event.Action, "delivery", o.Event.DeliveryCount)
		r.Log.WarnContext(ctx, message, append(more, event)...)
	}
	switch o.Action {
	case consumer.DeadLettered:
		warn("event dead-lettered", "next", "remove the cause, then resubmit the event from the dead-letter queue")
	case consumer.Parked:
		if o.Err != nil { // later events of the key are not logged
			warn("event parked; later events of its key wait for it", "next", "remove the cause, then feedbox parked retry or skip, with --consumer")
		}
	case consumer.Unsettled:
		warn("settlement not confirmed; the event may be redelivered")
	case consumer.Abandoned:
		if errors.Is(o.Err, errWaitForMissing) {
			warn("event waits for a missing one", "missing", o.Missing)
		} else {
			warn("event failed; it is retried")
		}
	case consumer.Handled:
		switch o.Verdict {
		case consumer.Gap:
			warn("event handled without an earlier one of its key", "missing", o.Missing)
		case consumer.Fork:
			warn("event of another history handled", "replaced", o.Event.Replaced,
				"next", "the store has lost events of this key that were handled before: see RELIABILITY, Failover and restore of PostgreSQL")
		case consumer.Fresh, consumer.Duplicate, consumer.Stale:
		}
	case consumer.Dropped:
		if o.Err != nil {
			warn(droppedByPolicy)
		}
	case consumer.Deferred:
	}
}
