package relayservice

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"

	"feedbox/changefeed"
	"feedbox/infrastructure/relay/monitor"
	"feedbox/infrastructure/relay/relayport"
)

// Options tune a relay. The zero values are the defaults.
type Options struct {
	// Processor names the lease set; relays with the same name share the work. Default
	// "feedbox".
	Processor string
	// Container names the container in metrics, in the log and in errors, if a process has a Service for
	// each of several. Default: not named.
	Container string
	// Siblings are the Services of this process for other containers, which share the leases of all with
	// it; see changefeed.Siblings. Default: none.
	Siblings *changefeed.Siblings
	// Instance names this relay in the leases. Give each relay its own, also those of one
	// process; two with the same name still share the work and log an error. Default: the host
	// name and eight random digits, as that of feedbox relay. A library reads no environment,
	// so FEEDBOX_INSTANCE has no effect here.
	Instance string
	// Start is the position in a container that no relay has read before. Default: its
	// beginning.
	Start changefeed.Start
	// Expiry, Renew and Acquire are those of changefeed.Options. Defaults 20 s, and a
	// quarter of Expiry.
	Expiry, Renew, Acquire time.Duration
	// MaxItems is the page size asked of the change feed. Default: that of the store.
	MaxItems int
	// PollBusy is the shortest pause between two reads of a range whose changes follow each other
	// quickly. A longer one saves reads and delays events by up to as much. A backlog is read
	// without a pause. Default 1 ms: a range is then read about as often as it changes, which is
	// cheap because an empty read costs at most a tenth of a write.
	PollBusy time.Duration
	// PollMin and PollMax bound the pause after an empty page. Defaults 10 ms and 5 s, at least
	// PollBusy.
	PollMin, PollMax time.Duration
	// PollRate is that of changefeed.Options: the reads without a change of this relay in a second,
	// at most. Default 1000.
	PollRate int
	// DrainTimeout bounds the stop of the processor. Default 20 s.
	DrainTimeout time.Duration
	// WaitLimit is how long an event may be retried while others are sent; then its key is
	// parked. It must be well below the broker's duplicate window, because a crash meanwhile
	// repeats all events that were sent after it. Default 1 min.
	WaitLimit time.Duration
	// ParkedPoll is the interval between two polls for the intents of operators on parked
	// keys. Default 5 s.
	ParkedPoll time.Duration
	// EventTTL is the TTL that writers give to events; the log warns when unsent events
	// approach it. Default 240 h; negative for none.
	EventTTL time.Duration

	// Logger receives the events that matter to operators. Default: slog.Default.
	Logger *slog.Logger
	// Meters take the metrics. Default: none.
	Meters metric.MeterProvider
	// Tracers take a span of each batch of events, in the traces of their requests. Default:
	// none, and no cost.
	Tracers trace.TracerProvider
	// Needs record how the store and the broker answer, by their names. With Container, NoteOf records the
	// store. Default: not shared.
	Needs monitor.Dependencies
	// WrapLeases wraps the lease store, for tests. Default: not wrapped.
	WrapLeases func(changefeed.LeaseStore) changefeed.LeaseStore
	// Observer receives the events of the processor, besides Logger and Meters. Default: none.
	Observer *changefeed.Observer
}

func (o *Options) withDefaults(store *relayport.Store, broker *relayport.Broker) (Options, error) {
	if o == nil {
		o = &Options{}
	}
	given := *o
	given.Processor = cmp.Or(given.Processor, "feedbox")
	given.Expiry = cmp.Or(given.Expiry, 20*time.Second)
	given.Renew = cmp.Or(given.Renew, given.Expiry/4)
	given.Acquire = cmp.Or(given.Acquire, given.Expiry/4)
	given.MaxItems = cmp.Or(given.MaxItems, store.MaxItems, 100)
	given.PollBusy = cmp.Or(given.PollBusy, time.Millisecond)
	given.PollMin = max(cmp.Or(given.PollMin, 10*time.Millisecond), given.PollBusy)
	given.PollMax = cmp.Or(given.PollMax, max(5*time.Second, given.PollMin))
	given.DrainTimeout = cmp.Or(given.DrainTimeout, 20*time.Second)
	given.WaitLimit = cmp.Or(given.WaitLimit, time.Minute)
	given.EventTTL = max(cmp.Or(given.EventTTL, 240*time.Hour), 0)
	if store.Waits {
		given.PollMin = given.PollBusy
	}
	if given.Logger == nil {
		given.Logger = slog.Default()
	}
	if given.Container != "" {
		given.Logger = given.Logger.With(slog.String("container", given.Container))
	}
	if given.Meters == nil {
		given.Meters = noop.NewMeterProvider()
	}
	if given.Needs == nil {
		given.Needs = monitor.NewDependencies(time.Now, store.Name, broker.Name)
	}
	if given.WrapLeases == nil {
		given.WrapLeases = func(s changefeed.LeaseStore) changefeed.LeaseStore { return s }
	}
	var faults []error
	for _, name := range []string{store.Name, broker.Name} {
		if given.Needs[name] == nil {
			faults = append(faults, errors.New("relayservice: Needs lacks "+name))
		}
	}
	return given, errors.Join(faults...)
}
