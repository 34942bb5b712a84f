package consumer

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"feedbox/application/relay"
)

// ParkedStore keeps the parked events of one consumer. It may be in another database than the inbox.
type ParkedStore interface {
	relay.ParkedStore
	relay.DrainStore
}

// Options are the options of the kits for RabbitMQ and SQS, which retry events in the process. Zero
// means the default.
type Options struct {
	// Concurrency is the number of events handled in parallel. Default 8.
	Concurrency int
	// Inbox detects duplicates. Default: NewMemoryInbox(0).
	Inbox Inbox
	// Attempts is the number of attempts after which a failing event is dead-lettered. Default 10;
	// negative: no limit. Failures of the inbox, and errors of Unavailable, do not count.
	Attempts int
	// Park, if set, keeps the order of a key after a failure: an event that would be dead-lettered is
	// stored there, and then the later events of its key, until an operator retries or skips it
	// (feedbox parked --consumer). Default: dead-lettered, and later events are handled.
	Park ParkedStore
	// GapDeliveries is how often an event after a gap waits for the missing event before it is
	// handled without it. Default 3; negative: handled at once.
	GapDeliveries int
	// RetryDelay is the pause after a failed attempt; it doubles with each further failure up to
	// RetryDelayMax. Other keys are handled meanwhile. Defaults 1 s and 30 s.
	RetryDelay, RetryDelayMax time.Duration
	// DrainTimeout is how long handlers may run after cancellation. Default 20 s.
	DrainTimeout time.Duration

	// Observe, if set, is called with the outcome of every attempt. It must return quickly and be
	// safe for concurrent use.
	Observe func(ctx context.Context, o Outcome)
	// Logger receives failures that Run survives, the same one once a minute. Default: slog.Default.
	Logger *slog.Logger
	// Meters take the metrics, which the README of package subscriber lists. Default: none.
	Meters metric.MeterProvider
	// Tracers take a span of each handled event, in the trace of its request. Default: none.
	Tracers trace.TracerProvider
}
