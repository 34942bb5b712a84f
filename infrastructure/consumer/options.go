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
	// Policies are those of some actions, by action; that of "" is for all others.
	Policies map[string]Policy
	// Park, if set, keeps the order of a key after a failure: an event that would be dead-lettered is
	// stored there, and then the later events of its key, until an operator retries or skips it
	// (feedbox parked --consumer). Default: dead-lettered, and later events are handled.
	Park ParkedStore
	// ParkedPoll is the pause between two queries of Park for the requests of operators, with a jitter of 20 %.
	// Default 5 s.
	ParkedPoll time.Duration
	// GapDeliveries is how often an event after a gap waits for the missing event before it is
	// handled without it. Default 3; negative: handled at once.
	GapDeliveries int
	// RetryDelay is the pause after a failed attempt; it doubles with each further failure up to
	// RetryDelayMax. Other keys are handled meanwhile. Defaults 1 s and 30 s.
	RetryDelay, RetryDelayMax time.Duration
	// DrainTimeout is how long handlers may run after cancellation. Default 20 s.
	DrainTimeout time.Duration

	// Observe, if set, is called with the outcome of every attempt. It must return quickly and be
	// safe for concurrent use. A panic is logged.
	Observe func(ctx context.Context, o Outcome)
	// Logger receives failures that Run survives, the same one once a minute, and each event that a
	// policy drops. Default: slog.Default.
	Logger *slog.Logger
	// Meters take the metrics, which the README of package subscriber lists. Default: none.
	Meters metric.MeterProvider
	// Tracers take a span of each handled event, in the trace of its request. Default: none.
	Tracers trace.TracerProvider
}

// Policy says how failures of one action are treated. Zero means as for all actions, by the options of the kit.
type Policy struct {
	// Timeout bounds one call of the handler, whose context then ends with ErrTimeout. An error after that
	// is a failure like any other. Default: no limit.
	Timeout time.Duration
	// Attempts is the number of attempts after which an event is refused; negative: no limit. On Service Bus
	// the broker dead-letters an event after MaxDeliveryCount deliveries, so more have no effect there.
	Attempts int
	// RetryDelay and RetryDelayMax are those of Options.
	RetryDelay, RetryDelayMax time.Duration
	// IsRefused reports whether an error will be the same after another attempt. The event is then refused
	// (ReasonRefused), as after DeadLetter. It must be safe for concurrent use. A panic, here and in
	// IsUnavailable, is a failure like any other.
	IsRefused func(err error) bool
	// Refused says what happens to a refused event. Default: ParkOrDeadLetter.
	Refused Treatment
	// Dependency names a system that the handler needs, for example "crm". After an error of Unavailable,
	// only one event of all actions with this dependency is tried at a time, after a pause that grows like
	// that of retries, until one has another result. The others wait, and neither attempts nor deliveries
	// are counted. Default: each event is retried on its own.
	Dependency string
	// IsUnavailable reports whether an error has the meaning of Unavailable. It must be safe for concurrent
	// use. Default: only errors of Unavailable.
	IsUnavailable func(err error) bool
}

// Treatment is what happens to a refused event.
type Treatment uint8

const (
	// ParkOrDeadLetter parks the event if Options.Park is set, and dead-letters it otherwise.
	ParkOrDeadLetter Treatment = iota
	// DeadLetterOnly dead-letters the event, and later events of its key are handled.
	DeadLetterOnly
	// Drop completes the event, which is logged and counted ("outbox.consumer.dropped"), and nothing keeps it.
	Drop
)
