package consumer

import (
	"context"
	"log/slog"
	"time"
)

// Options are the choices of the kits that hold events in the process, those of RabbitMQ and
// SQS. Zero means the default.
type Options struct {
	// Concurrency is how many events are handled at a time. Default 8.
	Concurrency int
	// Inbox drops what comes again. Default: NewMemoryInbox(0).
	Inbox Inbox
	// Attempts is how often an event is handled in a row before it is dead-lettered. Default 10;
	// negative: until it succeeds. Failures of the inbox do not count.
	Attempts int
	// GapDeliveries is how often an event behind a gap waits before it is handled all the same.
	// Default 3; negative: handled at once.
	GapDeliveries int
	// RetryDelay is the pause after an event failed; it doubles with each further failure up to
	// RetryDelayMax. Events of other keys go on meanwhile. Defaults 1 s and 30 s.
	RetryDelay, RetryDelayMax time.Duration
	// DrainTimeout is how long handlers may go on after cancellation. Default 20 s.
	DrainTimeout time.Duration

	// Observe, if set, is called for every event that was dealt with, and each time that one is
	// to be handled again. It must be quick and safe for concurrent use.
	Observe func(ctx context.Context, o Outcome)
	// Logger takes failures that Run survives. Default: discarded.
	Logger *slog.Logger
}
