package config

import (
	"cmp"
	"time"
)

// Receiver is the HTTP endpoint of feedbox push and feedbox feed.
type Receiver struct {
	To       Address       `env:"TO" check:"anonymous" doc:"URL of the receiver that gets CloudEvents, for example https://shop.example/events"`
	Mode     string        `env:"MODE" envDefault:"structured" oneof:"structured|binary|batch" doc:"content mode of CloudEvents: structured is one JSON object, binary has the attributes in headers, batch is a JSON array of events of one key (feedbox push: of one event)"`
	Source   string        `env:"SOURCE" doc:"CloudEvents attribute source; default that of the message, or the address of the container"`
	Secret   Secret        `env:"SECRET" doc:"secret that signs each request as in Standard Webhooks, whsec_ and at least 24 bytes in base64; two of them, separated by a comma, during a rotation; not with mode binary, whose headers would not be signed"`
	Scope    string        `env:"SCOPE" doc:"scope of the bearer token of each request, for the Microsoft Entra identity of the process, for example api://orders/.default; default no token"`
	Refused  []int         `env:"REFUSED" envDefault:"409,410,422" doc:"statuses that refuse an event, separated by commas; other 4xx hold it, because a fault of the set-up causes them for all events"`
	Requests int           `env:"REQUESTS" envDefault:"64" min:"1" max:"10000" doc:"requests at a time"`
	Timeout  time.Duration `env:"TIMEOUT" envDefault:"30s" min:"100ms" max:"10m" doc:"longest time of a request"`
	RetryMax time.Duration `env:"RETRY_MAX" envDefault:"30s" min:"500ms" max:"1h" doc:"longest pause between attempts of an event; the first is 500ms"`
}

// Push is the configuration of feedbox push.
type Push struct {
	Store      Store
	Cosmos     Cosmos    `envPrefix:"COSMOS_"`
	Postgres   Postgres  `envPrefix:"POSTGRES_"`
	Firestore  Firestore `envPrefix:"FIRESTORE_"`
	Broker     Broker
	ServiceBus ServiceBus `envPrefix:"SERVICEBUS_"`
	RabbitMQ   RabbitMQ   `envPrefix:"RABBITMQ_"`
	SQS        SQS        `envPrefix:"SQS_"`
	SNS        SNS        `envPrefix:"SNS_"`
	Log        Log        `envPrefix:"LOG_"`
	Receiver   Receiver   `envPrefix:"PUSH_"`

	From     string            `env:"PUSH_FROM" doc:"where feedbox push receives events: a subscription of Service Bus as NAME or TOPIC/NAME, a group of RabbitMQ as NAME or NAME:QUEUES, the URL of a FIFO queue of SQS; default FEEDBOX_SQS_QUEUE_URL with SQS"`
	Keys     int               `env:"PUSH_KEYS" envDefault:"256" min:"1" max:"10000" doc:"keys at a time, those with a held event included"`
	Attempts int               `env:"PUSH_ATTEMPTS" envDefault:"0" min:"0" max:"1000000" doc:"failures (5xx, timeout) after which an event is dead-lettered or parked, outages not counted; 0: it is held until the receiver accepts or refuses it"`
	Park     string            `env:"PUSH_PARK" check:"name" doc:"name under which feedbox push parks refused events and the later ones of their keys, in the store of FEEDBOX_STORE, for feedbox parked --consumer; all processes of a consumer need the same; default none: they are dead-lettered, and later events are sent"`
	Policies string            `env:"PUSH_POLICIES" doc:"JSON file with policies by action, in which * is all others: attempts, backoff, backoffMax, timeout, refused, and then (park, dead-letter or drop); see cmd/feedbox/PUSH.md; default the other variables decide for all actions"`
	ByAction map[string]Policy // of that file; that of "" is for all others
	// ParkedPoll has an effect with Park only.
	ParkedPoll time.Duration `env:"PARKED_POLL" envDefault:"5s" min:"100ms" max:"1h" doc:"pause between two queries for the requests of operators about parked keys; each process makes one, also when there are none"`

	Process
	settings
}

// Feed is the configuration of feedbox feed.
type Feed struct {
	Cosmos   Cosmos   `envPrefix:"COSMOS_"`
	Lease    Lease    `envPrefix:"LEASE_"`
	Log      Log      `envPrefix:"LOG_"`
	Receiver Receiver `envPrefix:"PUSH_"`

	Processor string `env:"FEED_PROCESSOR" envDefault:"feed" check:"name" doc:"name of the lease set of feedbox feed; processes with the same name share the work; that of a relay is refused"`
	Start     Start  `env:"FEED_START" envDefault:"beginning" doc:"where feedbox feed begins without checkpoints: beginning, now or a time such as 2026-01-31T08:00:00Z"`
	Type      string `env:"FEED_TYPE" envDefault:"document.changed" doc:"CloudEvents attribute type of the documents"`
	Batch     int    `env:"FEED_BATCH" envDefault:"100" min:"1" max:"1000" doc:"documents of a key in one request, in mode batch"`
	Refused   string `env:"FEED_REFUSED" envDefault:"hold" oneof:"hold|skip" doc:"what happens to a document that the receiver refuses: hold keeps its key and retries, skip logs and drops it"`

	Process
	settings
}

// Process has the variables of any process with probes.
type Process struct {
	Instance       string        `env:"INSTANCE" check:"name" doc:"name of this process among the relays; default the host name and a random part"`
	OpsListen      string        `env:"OPS_LISTEN" envDefault:"127.0.0.1:0" check:"listen" doc:"address of /livez and /readyz, and of /metrics of API and relay; port 0 takes a free one"`
	AllowedHosts   []string      `env:"ALLOWED_HOSTS" doc:"host names that addresses on loopback serve besides localhost, separated by commas, such as that of a proxy on this machine; * is any; default none, because web pages can reach loopback addresses by DNS rebinding"`
	PlaintextHosts []string      `env:"PLAINTEXT_HOSTS" doc:"hosts besides this machine that may be reached without TLS, separated by commas; * is any; default none, because credentials and personal data are readable on the way"`
	DrainTimeout   time.Duration `env:"DRAIN_TIMEOUT" envDefault:"20s" min:"100ms" max:"10m" doc:"longest graceful stop after SIGTERM"`
}

// LoadPush reads the configuration of feedbox push from environ, as LoadAPI does.
func LoadPush(environ []string) (*Push, error) {
	c := &Push{}
	report := load(c, environ)
	report.plaintext = c.PlaintextHosts
	const from = "FEEDBOX_PUSH_FROM"
	switch c.Broker.Kind {
	case BrokerServiceBus:
		checkServiceBus(report, c.ServiceBus)
	case BrokerRabbitMQ:
		checkRabbitMQ(report, c.RabbitMQ)
	case BrokerSQS, BrokerSNS:
		if c.Broker.Kind == BrokerSQS {
			c.From = cmp.Or(c.From, string(c.SQS.QueueURL))
		}
		if c.From != "" {
			checkQueue(report, from, Address(c.From))
		}
		report.refusePlain("FEEDBOX_SQS_ENDPOINT", string(c.SQS.Endpoint), "http", "https")
		report.refusePlain("FEEDBOX_SNS_ENDPOINT", string(c.SNS.Endpoint), "http", "https")
	}
	if c.From == "" {
		report.add(from, "is not set", "give a subscription, a group or the URL of a queue, or --from")
	}
	if c.Park != "" {
		deriveEmulator(report, &c.Firestore, environ)
		checkStore(report, c.Store, c.Cosmos, c.Postgres, c.Firestore)
	}
	if c.Policies != "" {
		c.ByAction = readPolicies(report, c.Policies, c.Park != "")
	}
	checkReceiver(report, c.Receiver)
	checkTelemetry(report, environ)
	c.name(report)
	c.settings = report.settings
	return c, report.err()
}

// LoadFeed reads the configuration of feedbox feed from environ, as LoadAPI does.
func LoadFeed(environ []string) (*Feed, error) {
	c := &Feed{}
	report := load(c, environ)
	report.plaintext = c.PlaintextHosts
	checkCosmos(report, c.Cosmos)
	checkStart(report, "FEEDBOX_FEED_START", c.Start)
	if c.Cosmos.Container == c.Cosmos.Leases {
		report.add("FEEDBOX_COSMOS_LEASES", "is the container that is read, too", "give FEEDBOX_COSMOS_CONTAINER and FEEDBOX_COSMOS_LEASES different names")
	}
	checkReceiver(report, c.Receiver)
	checkTelemetry(report, environ)
	c.Lease.derive(report)
	c.name(report)
	c.settings = report.settings
	return c, report.err()
}

func (p *Process) name(report *report) {
	if p.Instance == "" {
		p.Instance = instanceName()
		report.settings.derive("FEEDBOX_INSTANCE", p.Instance)
	}
}

func checkReceiver(report *report, r Receiver) {
	const to = "FEEDBOX_PUSH_TO"
	switch {
	case r.To == "":
		report.add(to, "is not set", "give the URL of the receiver, or --to")
	case !IsHTTP(string(r.To)):
		report.add(to, "is not an http or https URL", "write for example https://shop.example/events")
	default:
		report.refusePlain(to, string(r.To), "http", "https")
	}
	if r.Mode == "binary" && r.Secret.IsSet() {
		report.add("FEEDBOX_PUSH_MODE", "is binary, in which FEEDBOX_PUSH_SECRET would not sign the attributes", "use structured or batch")
	}
	for _, status := range r.Refused {
		if status < 400 || status > 499 {
			report.add("FEEDBOX_PUSH_REFUSED", "has a status that is not 400 to 499", "write for example 400,409,410,422")
			return
		}
	}
}
