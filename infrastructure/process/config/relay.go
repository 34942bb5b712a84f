package config

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Relay is the configuration of the relay: change feed processor and
// publisher.
type Relay struct {
	Store      Store
	Cosmos     Cosmos    `envPrefix:"COSMOS_"`
	Postgres   Postgres  `envPrefix:"POSTGRES_"`
	Firestore  Firestore `envPrefix:"FIRESTORE_"`
	Broker     Broker
	ServiceBus ServiceBus `envPrefix:"SERVICEBUS_"`
	RabbitMQ   RabbitMQ   `envPrefix:"RABBITMQ_"`
	SQS        SQS        `envPrefix:"SQS_"`
	SNS        SNS        `envPrefix:"SNS_"`
	Event      Event      `envPrefix:"EVENT_"`
	Lease      Lease      `envPrefix:"LEASE_"`
	Log        Log        `envPrefix:"LOG_"`

	Processor string `env:"PROCESSOR" envDefault:"feedbox" check:"name" doc:"name of the lease set; relays with the same name share the work"`
	// Instance names this process; it must be unique among the relays. The default is, also for
	// several relays of one host.
	Instance string        `env:"INSTANCE" check:"name" doc:"name of this process among the relays; default the host name and a random part"`
	Start    Start         `env:"RELAY_START" envDefault:"beginning" doc:"where to begin without checkpoints: beginning, now or a time such as 2026-01-31T08:00:00Z"`
	MaxItems int           `env:"RELAY_MAX_ITEMS" envDefault:"0" min:"0" max:"10000" doc:"documents asked for in one page of the change feed; 0: 100, and 1000 of PostgreSQL; a transaction is never cut"`
	PollMin  time.Duration `env:"RELAY_POLL_MIN" envDefault:"10ms" min:"1ms" max:"1h" doc:"shortest pause after an empty page, kept while changes arrive; with PostgreSQL a read waits itself, and this is at most 1 ms"`
	PollBusy time.Duration `env:"RELAY_POLL_BUSY" envDefault:"1ms" min:"1ms" max:"1h" doc:"shortest pause between two reads of a range whose changes follow each other quickly; a longer one saves reads and delays events by up to as much; raises FEEDBOX_RELAY_POLL_MIN; a backlog is read without a pause"`
	PollMax  time.Duration `env:"RELAY_POLL_MAX" envDefault:"5s" min:"1ms" max:"1h" doc:"longest pause after an empty page, reached when idle"`
	PollRate int           `env:"RELAY_POLL_RATE" envDefault:"1000" min:"10" max:"100000" doc:"reads of the change feed without a change that a relay makes in a second, at most; with more ranges each is read less often, and its events wait; divided among the containers"`
	// ParkedPoll has the same name in Push.
	ParkedPoll time.Duration `env:"PARKED_POLL" envDefault:"5s" min:"100ms" max:"1h" doc:"pause between two queries for the requests of operators about parked keys; each process makes one, also when there are none"`
	// EventTTL is the lifetime that the API gives to events; the relay warns
	// when unsent events approach it.
	EventTTL time.Duration `env:"EVENT_TTL" envDefault:"240h" min:"1m" max:"87600h" doc:"lifetime of event documents; an event not sent by then is lost"`
	// More is of Containers.
	More []string `env:"RELAY_CONTAINERS" doc:"other containers of FEEDBOX_COSMOS_DATABASE that the relay reads, too, such as those of other kinds of aggregates: DATA/LEASES/PARKED, separated by commas; give all relays the same list"`
	// Feed is FeedLatest or FeedVersions. With FeedVersions EventTTL is FeedRetention.
	Feed           string        `env:"COSMOS_FEED" envDefault:"latest" oneof:"latest|versions" doc:"change feed of Cosmos DB: latest versions of documents, or all versions and deletes, from which an event can be read after it has expired; that needs continuous backup and has no beginning"`
	FeedRetention  time.Duration `env:"COSMOS_FEED_RETENTION" envDefault:"168h" min:"1m" max:"168h" doc:"how long the feed of all versions keeps an event: the retention of the continuous backup, at most 7 days; an event not sent by then is lost, and FEEDBOX_EVENT_TTL is without effect on the relay"`
	OpsListen      string        `env:"OPS_LISTEN" envDefault:"127.0.0.1:0" check:"listen" doc:"address of /livez and /readyz, and of /metrics of API and relay; port 0 takes a free one"`
	AllowedHosts   []string      `env:"ALLOWED_HOSTS" doc:"host names that addresses on loopback serve besides localhost, separated by commas, such as that of a proxy on this machine; * is any; default none, because web pages can reach loopback addresses by DNS rebinding"`
	PlaintextHosts []string      `env:"PLAINTEXT_HOSTS" doc:"hosts besides this machine that may be reached without TLS, separated by commas; * is any; default none, because credentials and personal data are readable on the way"`
	DrainTimeout   time.Duration `env:"DRAIN_TIMEOUT" envDefault:"20s" min:"100ms" max:"10m" doc:"longest graceful stop after SIGTERM"`

	settings
}

// WaitLimit is how long an event may be retried while others are sent; then its key is parked.
// It must be well below the topic's duplicate window (10 minutes by default), because a crash
// meanwhile repeats all events that were sent after it. Therefore it is not a setting.
const WaitLimit = time.Minute

// LoadRelay reads the relay's configuration from environ, a list of
// NAME=value in the manner of os.Environ. The error is an [*Error] that lists
// every fault.
func LoadRelay(environ []string) (*Relay, error) {
	c := &Relay{}
	report := load(c, environ)
	report.plaintext = c.PlaintextHosts
	deriveEmulator(report, &c.Firestore, environ)
	checkStore(report, c.Store, c.Cosmos, c.Postgres, c.Firestore)
	if c.Store.Kind == StoreCosmos {
		checkContainers(report, c.Cosmos)
	}
	c.Broker.Consumers = slices.DeleteFunc(c.Broker.Consumers, func(name string) bool { return name == "" }) // such as after a trailing comma
	checkMore(report, c)
	checkStart(report, "FEEDBOX_RELAY_START", c.Start)
	c.deriveFeed(report)
	switch c.Broker.Kind {
	case BrokerServiceBus:
		checkServiceBus(report, c.ServiceBus)
		checkTopics(report, c.ServiceBus)
		checkShards(report, c.ServiceBus)
	case BrokerRabbitMQ:
		checkRabbitMQ(report, c.RabbitMQ)
	case BrokerSQS:
		checkSQS(report, c.SQS)
	case BrokerSNS:
		checkSNS(report, c.SNS)
	}
	checkEvent(report, c.Event)
	checkTelemetry(report, environ)
	c.Lease.derive(report)
	if c.PollBusy > c.PollMax && !report.faulty("FEEDBOX_RELAY_POLL_BUSY", "FEEDBOX_RELAY_POLL_MAX") {
		report.add("FEEDBOX_RELAY_POLL_BUSY", "is "+c.PollBusy.String()+", longer than FEEDBOX_RELAY_POLL_MAX, "+c.PollMax.String(), "lower the first or raise the second")
	}
	if c.PollMin > c.PollMax && !report.faulty("FEEDBOX_RELAY_POLL_MIN", "FEEDBOX_RELAY_POLL_MAX") {
		report.add("FEEDBOX_RELAY_POLL_MIN", "is "+c.PollMin.String()+", longer than FEEDBOX_RELAY_POLL_MAX, "+c.PollMax.String(), "lower the first or raise the second")
	}
	if c.Instance == "" {
		c.Instance = instanceName()
		report.settings.derive("FEEDBOX_INSTANCE", c.Instance)
	}
	c.settings = report.settings
	return c, report.err()
}

// The feeds of Cosmos DB.
const (
	FeedLatest   = "latest"
	FeedVersions = "versions"
)

// deriveFeed begins the feed of all versions now, because it has no beginning, and measures the time
// that is left for unsent events by its retention.
func (c *Relay) deriveFeed(report *report) {
	if c.Feed != FeedVersions || report.faulty("FEEDBOX_RELAY_START", "FEEDBOX_COSMOS_FEED_RETENTION") {
		return
	}
	if c.Store.Kind != StoreCosmos {
		report.add("FEEDBOX_COSMOS_FEED", "is versions, which only the store cosmos has", "remove it, or set FEEDBOX_STORE to cosmos")
	}
	if report.settings.given("FEEDBOX_RELAY_START") && !c.Start.Now {
		report.add("FEEDBOX_RELAY_START", "is "+c.Start.String()+", but the feed of all versions begins now", "set it to now, and start a relay before the first write")
	}
	c.Start, c.EventTTL = Start{Now: true}, c.FeedRetention
	report.settings.derive("FEEDBOX_RELAY_START", c.Start.String())
	report.settings.derive("FEEDBOX_EVENT_TTL", c.EventTTL.String())
}

// derive fills the timings that were not given. It refuses a renewal that leaves no room for
// a failed attempt before the lease expires, and searches that would find an expired lease so
// late that the expiry is not the time of a takeover.
func (l *Lease) derive(report *report) {
	if report.faulty("FEEDBOX_LEASE_EXPIRY") {
		return
	}
	if l.Renew == 0 && !report.faulty("FEEDBOX_LEASE_RENEW") {
		l.Renew = l.Expiry / 4
		report.settings.derive("FEEDBOX_LEASE_RENEW", l.Renew.String())
	}
	if l.Acquire == 0 && !report.faulty("FEEDBOX_LEASE_ACQUIRE") {
		l.Acquire = l.Expiry / 4
		report.settings.derive("FEEDBOX_LEASE_ACQUIRE", l.Acquire.String())
	}
	if l.Renew > l.Expiry/2 {
		report.add("FEEDBOX_LEASE_RENEW",
			"is "+l.Renew.String()+", more than half of FEEDBOX_LEASE_EXPIRY, "+l.Expiry.String(),
			"one failed renewal would lose the lease; a quarter of the expiry is a good value")
	}
	if l.Acquire > l.Expiry {
		report.add("FEEDBOX_LEASE_ACQUIRE",
			"is "+l.Acquire.String()+", more than FEEDBOX_LEASE_EXPIRY, "+l.Expiry.String(),
			"an expired lease would have no owner until the next search; a quarter of the expiry is a good value")
	}
}

// instanceName returns the host name and eight random hexadecimal digits, so
// that two relays on one host differ.
func instanceName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "relay"
	}
	host = strings.Map(func(r rune) rune {
		if validNameRune(r) {
			return r
		}
		return '-'
	}, host)
	if len(host) > 64 {
		host = host[:64]
	}
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails: crypto/rand ends the program instead
	return host + "-" + hex.EncodeToString(random[:])
}

// HasBroker reports whether it is said how the broker is reached.
func (c *Relay) HasBroker() bool {
	switch c.Broker.Kind {
	case BrokerServiceBus:
		return c.ServiceBus.IsSet()
	case BrokerRabbitMQ:
		return c.RabbitMQ.URL.IsSet()
	case BrokerSQS:
		return c.SQS.QueueURL != ""
	case BrokerSNS:
		return c.SNS.TopicARN != ""
	default:
		return false
	}
}

// Shards returns the names of the broker's shards, none for a single topic.
func (c *Relay) Shards() []string {
	var names []string
	if c.Broker.Kind == BrokerServiceBus {
		for _, s := range c.ServiceBus.ShardList() {
			names = append(names, s.String())
		}
	}
	return names
}

// Start is the position at which the relay begins to read a container without
// checkpoints. With checkpoints it has no effect.
type Start struct {
	Now  bool      // skip everything that was written before the relay's first start
	Time time.Time // skip everything written before it; zero means no limit
}

// checkStart refuses a time in the future, because everything written before it would be skipped.
func checkStart(report *report, name string, s Start) {
	if s.Time.After(time.Now()) && !report.faulty(name) {
		report.add(name, "is "+s.String()+", which is in the future", "give a time that has passed, or now to skip what was written before")
	}
}

// String returns the form that UnmarshalText reads.
func (s Start) String() string {
	switch {
	case s.Now:
		return "now"
	case !s.Time.IsZero():
		return s.Time.Format(time.RFC3339Nano)
	default:
		return "beginning"
	}
}

// UnmarshalText reads "beginning", "now" or a time in RFC 3339.
func (s *Start) UnmarshalText(text []byte) error {
	switch value := string(text); value {
	case "beginning":
		*s = Start{}
	case "now":
		*s = Start{Now: true}
	default:
		t, err := time.Parse(time.RFC3339, value)
		if err != nil || t.IsZero() {
			return fmt.Errorf("%q is neither beginning, now nor a time such as 2026-01-31T08:00:00Z", value)
		}
		*s = Start{Time: t}
	}
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (s Start) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
