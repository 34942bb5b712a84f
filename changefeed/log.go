package changefeed

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// sparingly is how often a failure that repeats itself is logged.
const sparingly = time.Minute

// LogObserver returns an observer that writes what an operator needs to know to log:
// ownership at info, what is tried again at warn, what waits for a person at error. A
// failure that repeats itself, on whatever lease, is one line a minute; the attribute
// repeated counts those in between. Leases have their short name (LeaseName).
func LogObserver(log *slog.Logger) *Observer {
	ctx := context.Background() //nolint:forbidigo // slog wants one, hooks have none
	s := &sparing{last: map[string]lastLine{}}
	warn := func(message string, err error, args ...any) {
		if repeated, ok := s.line(message, err); ok {
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
		LeaseError: func(e LeaseError) { warn("lease store", e.Err, "lease", LeaseName(e.Lease), "op", e.Op) },
		ReadFailed: func(e ReadFailed) {
			warn("change feed read", e.Err, "lease", LeaseName(e.Lease), "pause", e.Pause)
		},
		BatchFailed: func(e BatchFailed) {
			warn("changes not delivered", e.Err, "lease", LeaseName(e.Lease), "items", e.Items, "attempt", e.Attempt)
		},
		DocumentPoisoned: func(e DocumentPoisoned) {
			log.ErrorContext(ctx, "document given up", "lease", LeaseName(e.Lease), "document", e.ID, "lsn", e.LSN, "attempts", e.Attempts, "policy", string(e.Policy), "error", e.Err)
		},
		RangeStuck: func(e RangeStuck) {
			log.ErrorContext(ctx, "range is stuck", "lease", LeaseName(e.Lease), "failures", e.Failures, "since", e.Since, "error", e.Err)
		},
		RangeRecovered: func(e RangeRecovered) { log.InfoContext(ctx, "range goes on", "lease", LeaseName(e.Lease)) },
		RangeSplit: func(e RangeSplit) {
			log.InfoContext(ctx, "range was split", "lease", LeaseName(e.Lease), "children", len(e.Children))
		},
		GapRepaired: func(e GapRepaired) {
			log.WarnContext(ctx, "no lease covered a range, one was made", "range", e.Range.String())
		},
		DuplicateHost: func(e DuplicateHost) {
			log.ErrorContext(ctx, "another process has this host name, give each its own", "host", e.Host, "incarnation", e.Incarnation)
		},
	}
}

// sparing lets one line of a kind through in a while.
type sparing struct {
	mu   sync.Mutex // guards last
	last map[string]lastLine
}

type lastLine struct {
	at       time.Time
	repeated int // since then
}

// line tells whether to write one about err, and how many were left out since the last.
func (s *sparing) line(message string, err error) (repeated int, ok bool) {
	kind := message + ": " + kindOf(err)
	now := time.Now() // of when it is written, whatever the processor's clock says
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.last[kind]
	if now.Sub(last.at) < sparingly {
		s.last[kind] = lastLine{at: last.at, repeated: last.repeated + 1}
		return 0, false
	}
	if len(s.last) >= maxKinds {
		clear(s.last)
	}
	s.last[kind] = lastLine{at: now}
	return last.repeated, true
}

// maxKinds bounds what is remembered of errors whose texts all differ.
const maxKinds = 100

// kindOf is the beginning of an error's text, up to the second colon: behind it stand
// the ids that make each different.
func kindOf(err error) string {
	if err == nil {
		return ""
	}
	parts := strings.SplitN(err.Error(), ": ", 3)
	return strings.Join(parts[:min(2, len(parts))], ": ")
}
