package relayservice

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"feedbox/changefeed"
	"feedbox/infrastructure/relay/monitor"
	"feedbox/infrastructure/relay/relayport"
)

// Options tune a relay. The zero values are the defaults.
type Options struct {
	// Processor names the lease set; relays with the same name share the work. Default
	// "feedbox".
	Processor string
	// Instance names this process among the relays. Default: the host name; two relays of
	// one name are told apart.
	Instance string
	// Start says where a container is read from that was never read before. Default: its
	// beginning.
	Start changefeed.Start
	// Expiry, Renew and Acquire are those of changefeed.Options. Defaults 20 s, and a
	// quarter of Expiry.
	Expiry, Renew, Acquire time.Duration
	// MaxItems is the page size asked of the change feed. Default: that of the store.
	MaxItems int
	// PollMin and PollMax bound the pause after an empty page. Defaults 10 ms and 5 s.
	PollMin, PollMax time.Duration
	// DrainTimeout bounds the stop of the processor. Default 20 s.
	DrainTimeout time.Duration
	// WaitLimit is how long an event may wait while others are sent before its key is
	// parked. It has to lie well within the broker's duplicate window. Default 1 min.
	WaitLimit time.Duration
	// ParkedPoll is the time between two looks for what operators want of parked keys.
	// Default 5 s.
	ParkedPoll time.Duration
	// EventTTL is the lifetime that writers give to events; the log warns when what is not
	// sent grows old against it. Default 240 h; negative is for ever.
	EventTTL time.Duration

	// Logger gets a line for whatever an operator should know. Default: slog.Default.
	Logger *slog.Logger
	// Meters take the metrics. Default: none.
	Meters metric.MeterProvider
	// Needs are told how the store and the broker answer, by their names. Default: nobody.
	Needs monitor.Dependencies
	// WrapLeases returns a lease store around the one that is used. Default: the same.
	WrapLeases func(changefeed.LeaseStore) changefeed.LeaseStore
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
	given.PollMin = cmp.Or(given.PollMin, 10*time.Millisecond)
	given.PollMax = cmp.Or(given.PollMax, 5*time.Second)
	given.DrainTimeout = cmp.Or(given.DrainTimeout, 20*time.Second)
	given.WaitLimit = cmp.Or(given.WaitLimit, time.Minute)
	given.EventTTL = max(cmp.Or(given.EventTTL, 240*time.Hour), 0)
	if store.Waits {
		given.PollMin = min(given.PollMin, pollBusy)
	}
	if given.Logger == nil {
		given.Logger = slog.Default()
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
