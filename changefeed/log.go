package changefeed

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// logInterval is the shortest time between two log lines of the same failure.
const logInterval = time.Minute

// LogObserver returns an observer that logs to log: ownership at info, retried failures at
// warn, failures that need an operator at error. A repeated failure, on whatever lease, is
// one line a minute, because a broken store or destination fails for all leases at once.
// The attribute repeated counts the suppressed lines. Leases have their short name
// (LeaseName).
func LogObserver(log *slog.Logger) *Observer {
	ctx := context.Background() //nolint:forbidigo // slog wants one, hooks have none
	s := &logLimiter{last: map[string]lastLine{}}
	warn := func(message string, err error, args ...any) {
		if repeated, ok := s.allow(message, err); ok {
			log.WarnContext(ctx, message, append(args, "error", err, "repeated", repeated)...)
		}
	}
	return &Observer{
		LeaseAcquired: func(e LeaseAcquired) {
			log.InfoContext(ctx, "lease acquired", "lease", LeaseName(e.Lease), "range", e.Range.String(), "epoch", e.Epoch, "from", e.From)
		},
		LeaseReleased: func(e LeaseReleased) {
			log.InfoContext(ctx, "lease released", "lease", LeaseName(e.Lease), "epoch", e.Epoch, "to", e.To, "reason", e.Reason)
		},
		LeaseLost: func(e LeaseLost) {
			log.WarnContext(ctx, "lease lost", "lease", LeaseName(e.Lease), "epoch", e.Epoch, "error", e.Err)
		},
		LeaseError: func(e LeaseError) {
			warn("lease store operation failed", e.Err, "lease", LeaseName(e.Lease), "op", e.Op)
		},
		ReadFailed: func(e ReadFailed) {
			warn("change feed read failed", e.Err, "lease", LeaseName(e.Lease), "pause", e.Pause)
		},
		BatchFailed: func(e BatchFailed) {
			warn("delivery failed", e.Err, "lease", LeaseName(e.Lease), "items", e.Items, "attempt", e.Attempt)
		},
		DocumentPoisoned: func(e DocumentPoisoned) {
			log.ErrorContext(ctx, "poison document", "lease", LeaseName(e.Lease), "document", e.ID, "lsn", e.LSN, "attempts", e.Attempts, "policy", string(e.Policy), "error", e.Err)
		},
		RangeStuck: func(e RangeStuck) {
			log.ErrorContext(ctx, "range is stuck", "lease", LeaseName(e.Lease), "failures", e.Failures, "since", e.Since, "error", e.Err)
		},
		RangeRecovered: func(e RangeRecovered) { log.InfoContext(ctx, "range recovered", "lease", LeaseName(e.Lease)) },
		RangeUnread: func(e RangeUnread) {
			log.ErrorContext(ctx, "range is not read", "lease", LeaseName(e.Lease), "range", e.Range.String(), "owner", e.Owner, "for", e.For, "error", e.Err)
		},
		Recreated: func(e Recreated) {
			log.ErrorContext(ctx, "container was deleted and created again: starting with new leases from its beginning", "from", e.From.Container, "to", e.To.Container)
		},
		RangeSplit: func(e RangeSplit) {
			log.InfoContext(ctx, "range split", "lease", LeaseName(e.Lease), "children", len(e.Children))
		},
		GapRepaired: func(e GapRepaired) {
			log.WarnContext(ctx, "gap repaired: no lease covered the range", "range", e.Range.String())
		},
		DuplicateHost: func(e DuplicateHost) {
			log.ErrorContext(ctx, "duplicate host name: give each process its own", "host", e.Host, "incarnation", e.Incarnation)
		},
	}
}

// logLimiter passes one line of a kind per logInterval.
type logLimiter struct {
	mu   sync.Mutex // guards last
	last map[string]lastLine
}

type lastLine struct {
	at       time.Time
	repeated int // since then
}

// allow reports whether to log a line about err, and how many lines were suppressed before
// it.
func (s *logLimiter) allow(message string, err error) (repeated int, ok bool) {
	kind := message + ": " + errorKind(err)
	now := time.Now() // of the log line, whatever the processor's clock says
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.last[kind]
	if now.Sub(last.at) < logInterval {
		s.last[kind] = lastLine{at: last.at, repeated: last.repeated + 1}
		return 0, false
	}
	if len(s.last) >= maxKinds {
		clear(s.last)
	}
	s.last[kind] = lastLine{at: now}
	return last.repeated, true
}

// maxKinds bounds the memory for errors whose texts all differ.
const maxKinds = 100

// errorKind returns the text of an error up to the second colon, because the text after it
// contains ids that make each error different.
func errorKind(err error) string {
	if err == nil {
		return ""
	}
	parts := strings.SplitN(err.Error(), ": ", 3)
	return strings.Join(parts[:min(2, len(parts))], ": ")
}
