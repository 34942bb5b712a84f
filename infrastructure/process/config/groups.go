package config

import "time"

// The values of Store.
const (
	StoreCosmos    = "cosmos"
	StorePostgres  = "postgres"
	StoreFirestore = "firestore"
)

// Store selects the kind of store. Both processes use it; the variables of other kinds are
// ignored.
type Store struct {
	Kind string `env:"STORE" envDefault:"cosmos" oneof:"cosmos|postgres|firestore" doc:"kind of the store that holds the aggregates and their events"`
}

// The values of Broker.
const (
	BrokerServiceBus = "servicebus"
	BrokerRabbitMQ   = "rabbitmq"
	BrokerSQS        = "sqs"
)

// Broker selects the kind of broker. Only the relay uses it; the variables of other kinds are
// ignored.
type Broker struct {
	Kind string `env:"BROKER" envDefault:"servicebus" oneof:"servicebus|rabbitmq|sqs" doc:"kind of the broker that the events go to"`
}

// Cosmos names the account and the containers. Both processes use it.
type Cosmos struct {
	// Endpoint is the account's URL.
	Endpoint string `env:"ENDPOINT" doc:"URL of the Cosmos DB account, for example https://contoso.documents.azure.com:443/"`
	// Key is the account key. Without it DefaultAzureCredential is used.
	Key Secret `env:"KEY" doc:"account key; absent: DefaultAzureCredential"`
	// PreferredRegions are tried in this order for reads.
	PreferredRegions []string `env:"PREFERRED_REGIONS" doc:"regions of the account to read from, the nearest first, separated by commas, for example West Europe,North Europe; default the account's order"`
	// Database holds all containers.
	Database string `env:"DATABASE" envDefault:"contacts" doc:"database"`
	// Container holds contacts and their events.
	Container string `env:"CONTAINER" envDefault:"data" doc:"container of the aggregates and their events, partitioned by /partitionKey"`
	// Leases holds the relay's leases.
	Leases string `env:"LEASES" envDefault:"leases" doc:"container of the relay's leases, partitioned by /id"`
	// Parked holds events that were refused for good.
	Parked string `env:"PARKED" envDefault:"parked" doc:"container of parked events, partitioned by /partitionKey"`
}

// Postgres names the database. Both processes use it.
type Postgres struct {
	// URL contains host, database and user.
	URL Secret `env:"URL" doc:"URL of the database, for example postgres://user:password@host:5432/contacts?sslmode=verify-full"`
	// Schema holds all tables.
	Schema string `env:"SCHEMA" envDefault:"feedbox" check:"name" doc:"schema of the tables"`
	// Migrate lets a start migrate the schema to the version of the program.
	Migrate bool `env:"MIGRATE" envDefault:"true" doc:"create the schema at the start, or bring it to the version of the program; false: only compare it"`
	// Ranges is the number of feed ranges of the events.
	Ranges int `env:"RANGES" envDefault:"4" min:"1" max:"1024" doc:"feed ranges that relays share: 1, 2, 4 and so on; more of them split the leases of a running relay"`
}

// Firestore names the database. Both processes use it. The credential is that of
// Google's client: its variables, its files, or the identity of the machine or pod.
type Firestore struct {
	// Project is its id.
	Project string `env:"PROJECT" doc:"id of the Google Cloud project that has the database"`
	// Database is its id.
	Database string `env:"DATABASE" envDefault:"(default)" doc:"id of the database"`
	// Ranges is how many feed ranges the events are read by.
	Ranges int `env:"RANGES" envDefault:"4" min:"1" max:"16" doc:"feed ranges that relays share: 1, 2, 4, 8 or 16; more of them split the leases of a running relay"`
	// EmulatorHost is the address of Google's emulator.
	EmulatorHost string `env:"EMULATOR_HOST" doc:"host:port of Google's emulator, in the place of the service; default FIRESTORE_EMULATOR_HOST, as for Google's clients"`
}

// ServiceBus names the namespace and the topic. Only the relay uses it.
type ServiceBus struct {
	// ConnectionString holds endpoint and SAS key. It excludes Namespace.
	ConnectionString Secret `env:"CONNECTION_STRING" doc:"connection string with a SAS key that may send; this or FEEDBOX_SERVICEBUS_NAMESPACE"`
	// Namespace is a host name, used with DefaultAzureCredential.
	Namespace string `env:"NAMESPACE" doc:"host name of the namespace, for example contoso.servicebus.windows.net, used with DefaultAzureCredential"`
	// Topic receives the events.
	Topic string `env:"TOPIC" envDefault:"contacts" doc:"topic that receives the events"`
	// Topics are the exceptions from Topic, by the subject of an event.
	Topics []string `env:"TOPICS" doc:"topics of events with some subjects, as subject=topic, separated by commas; default FEEDBOX_SERVICEBUS_TOPIC for all"`
	// Source is the CloudEvents attribute.
	Source string `env:"SOURCE" doc:"CloudEvents attribute source of the messages; default / and the name of the topic"`
	// PackKeys puts the events of several keys into one batch.
	PackKeys bool `env:"PACK_KEYS" envDefault:"false" doc:"put events of several keys into one batch: much faster, for topics without partitions"`
}

// IsSet reports whether exactly one way to reach the namespace is configured.
func (s ServiceBus) IsSet() bool { return s.ConnectionString.IsSet() != (s.Namespace != "") }

// RabbitMQ names the broker and the exchange. Only the relay uses it.
type RabbitMQ struct {
	// URL holds user and password.
	URL Secret `env:"URL" doc:"URL of RabbitMQ with user and password: amqps://user:password@host/vhost"`
	// Exchange receives the events.
	Exchange string `env:"EXCHANGE" envDefault:"contacts" doc:"direct exchange that receives the events"`
	// Source is the app id.
	Source string `env:"SOURCE" doc:"app id of the messages, at most 255 bytes; default / and the name of the exchange"`
}

// SQS names the queue. Only the relay uses it. The credential is that of the AWS SDK:
// its variables, its files, or the role of the machine or pod.
type SQS struct {
	// QueueURL is that of a FIFO queue.
	QueueURL string `env:"QUEUE_URL" doc:"URL of the FIFO queue that receives the events, for example https://sqs.eu-west-1.amazonaws.com/123456789012/contacts.fifo"`
	// Region of the queue.
	Region string `env:"REGION" doc:"region of the queue; default as the AWS SDK finds it, AWS_REGION for one"`
	// Endpoint is another address than that of the region.
	Endpoint string `env:"ENDPOINT" doc:"address of the service, for a server that behaves like it; default that of the region"`
	// Source is the CloudEvents attribute.
	Source string `env:"SOURCE" doc:"CloudEvents attribute source of the messages; default the URL of the queue"`
}

// Lease holds the timings of lease ownership. Zero Renew and Acquire are
// derived from Expiry when loading, so that changing Expiry alone is safe.
type Lease struct {
	// Expiry is how long an unrenewed lease stays owned.
	Expiry time.Duration `env:"EXPIRY" envDefault:"20s" min:"500ms" max:"1h" doc:"a lease not renewed for this long may be taken over"`
	// Renew is the time between two renewals; default a quarter of Expiry.
	Renew time.Duration `env:"RENEW" min:"100ms" max:"30m" doc:"time between renewals of an owned lease; default a quarter of FEEDBOX_LEASE_EXPIRY"`
	// Acquire is the time between two balancing cycles; default a quarter of
	// Expiry.
	Acquire time.Duration `env:"ACQUIRE" min:"100ms" max:"1h" doc:"time between searches for free or expired leases; default a quarter of FEEDBOX_LEASE_EXPIRY"`
}

// Log selects level and format of the log.
type Log struct {
	// Level is the lowest level that is written.
	Level string `env:"LEVEL" envDefault:"info" oneof:"debug|info|warn|error" doc:"lowest level that is logged"`
	// Format is auto (coloured text on a terminal, else JSON), json or text.
	Format string `env:"FORMAT" envDefault:"auto" oneof:"auto|json|text" doc:"auto writes coloured text on a terminal and JSON elsewhere"`
}
