package relayservice

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"feedbox/changefeed"
	"feedbox/infrastructure/cosmos"
	"feedbox/infrastructure/monitor"
)

// Options tune a relay. Database and Topic are required; the zero values of the others are
// the defaults.
type Options struct {
	// Database holds the three containers.
	Database string
	// Data is the container whose change feed is read. Default "data".
	Data string
	// Leases is the container of the relay's leases. Default "leases".
	Leases string
	// Parked is the container of parked events. Default "parked".
	Parked string
	// Contract says which documents are events. The zero value is that of package cosmos.
	Contract cosmos.EventContract
	// Topic receives the events.
	Topic string
	// Topics are the exceptions from Topic, by the subject of an event.
	Topics map[string]string
	// Source is the CloudEvents attribute of that name. Default: "/" and the topic.
	Source string
	// PackKeys puts events of several keys into one batch: much faster, for topics without
	// partitions.
	PackKeys bool

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
	// MaxItems is the page size asked of the change feed. Default 100.
	MaxItems int
	// PollMin and PollMax bound the pause after an empty page. Defaults 10 ms and 5 s.
	PollMin, PollMax time.Duration
	// DrainTimeout bounds the stop of the processor. Default 20 s.
	DrainTimeout time.Duration
	// WaitLimit is how long an event may wait while others are sent before its key is
	// parked. It has to lie well within the topic's duplicate window. Default 1 min.
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
	// Account, if the store's client has it as a policy, lets Verify judge the account.
	Account *cosmos.Account
	// Needs are told how the store and the broker answer. Default: nobody.
	Needs monitor.Dependencies
	// WrapLeases returns a lease store around the one that is used. Default: the same.
	WrapLeases func(changefeed.LeaseStore) changefeed.LeaseStore
}

func (o *Options) withDefaults() (Options, error) {
	if o == nil {
		o = &Options{}
	}
	given := *o
	given.Data = cmp.Or(given.Data, "data")
	given.Leases = cmp.Or(given.Leases, "leases")
	given.Parked = cmp.Or(given.Parked, "parked")
	given.Processor = cmp.Or(given.Processor, "feedbox")
	given.Expiry = cmp.Or(given.Expiry, 20*time.Second)
	given.Renew = cmp.Or(given.Renew, given.Expiry/4)
	given.Acquire = cmp.Or(given.Acquire, given.Expiry/4)
	given.MaxItems = cmp.Or(given.MaxItems, 100)
	given.PollMin = cmp.Or(given.PollMin, 10*time.Millisecond)
	given.PollMax = cmp.Or(given.PollMax, 5*time.Second)
	given.DrainTimeout = cmp.Or(given.DrainTimeout, 20*time.Second)
	given.WaitLimit = cmp.Or(given.WaitLimit, time.Minute)
	given.EventTTL = max(cmp.Or(given.EventTTL, 240*time.Hour), 0)
	if given.Logger == nil {
		given.Logger = slog.Default()
	}
	if given.Meters == nil {
		given.Meters = noop.NewMeterProvider()
	}
	if given.Needs == nil {
		given.Needs = monitor.NewDependencies(time.Now, monitor.OnCosmos, monitor.OnServiceBus)
	}
	if given.WrapLeases == nil {
		given.WrapLeases = func(s changefeed.LeaseStore) changefeed.LeaseStore { return s }
	}
	var faults []error
	if given.Database == "" {
		faults = append(faults, errors.New("relayservice: Database is missing"))
	}
	if given.Topic == "" {
		faults = append(faults, errors.New("relayservice: Topic is missing"))
	}
	if given.Data == given.Leases || given.Data == given.Parked || given.Leases == given.Parked {
		faults = append(faults, errors.New("relayservice: Data, Leases and Parked must be three different containers"))
	}
	for _, name := range []string{monitor.OnCosmos, monitor.OnServiceBus} {
		if given.Needs[name] == nil {
			faults = append(faults, errors.New("relayservice: Needs lacks "+name))
		}
	}
	return given, errors.Join(faults...)
}
