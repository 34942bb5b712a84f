package relay

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// ownership tracks how many ranges each relay owns. It reads the relays' logs, because with
// the wiring of production there is no other source.
type ownership struct {
	mu     sync.Mutex // guards the fields below
	leases map[int]int
	last   string
}

// of returns the log handler of relay i.
func (o *ownership) of(i int) slog.Handler { return ownershipLog{o, i} }

// wait returns when all ranges are owned and each relay has its share.
func (o *ownership) wait(ctx context.Context, relays, ranges int) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if o.even(relays, ranges) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			o.mu.Lock()
			defer o.mu.Unlock()
			return fmt.Errorf("the relays own %v of %d ranges, last log record %q: %w", o.leases, ranges, o.last, ctx.Err())
		}
	}
}

func (o *ownership) even(relays, ranges int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	sum := 0
	for i := range relays {
		if o.leases[i] < ranges/relays {
			return false
		}
		sum += o.leases[i]
	}
	return sum == ranges
}

func (o *ownership) note(i, leases int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.leases == nil {
		o.leases = make(map[int]int)
	}
	o.leases[i] += leases
}

type ownershipLog struct {
	o *ownership
	i int
}

func (l ownershipLog) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo
}

func (l ownershipLog) Handle(_ context.Context, r slog.Record) error {
	switch r.Message {
	case "lease acquired":
		l.o.note(l.i, 1)
	case "lease released", "lease lost":
		l.o.note(l.i, -1)
	default:
		l.o.mu.Lock()
		l.o.last = r.Message
		l.o.mu.Unlock()
	}
	return nil
}

func (l ownershipLog) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l ownershipLog) WithGroup(string) slog.Handler      { return l }
