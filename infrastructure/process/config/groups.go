package config

import (
	"strings"
	"time"
)

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
	BrokerSNS        = "sns"
)

// Broker selects the kind of broker. Only the relay uses it; the variables of other kinds are
// ignored.
type Broker struct {
	Kind string `env:"BROKER" envDefault:"servicebus" oneof:"servicebus|rabbitmq|sqs|sns" doc:"kind of the broker that the events go to"`
	// Consumers is not checked by the relay, which does not use it.
	Consumers []string `env:"CONSUMERS" doc:"consumers whose dead letters operators see, separated by commas: subscriptions of Service Bus as NAME or TOPIC/NAME, groups of RabbitMQ as NAME or NAME:QUEUES; default the subscriptions that the management API or SNS lists; SQS needs none, and SNS the names of queues"`
}

// Cosmos names the account and the containers. Both processes use it.
type Cosmos struct {
	Endpoint         Address  `env:"ENDPOINT" doc:"URL of the Cosmos DB account, for example https://contoso.documents.azure.com:443/"`
	Key              Secret   `env:"KEY" doc:"account key; absent: DefaultAzureCredential"`
	PreferredRegions []string `env:"PREFERRED_REGIONS" doc:"regions of the account to read from, the nearest first, separated by commas, for example West Europe,North Europe; default the account's order"`
	Database         string   `env:"DATABASE" envDefault:"contacts" doc:"database"`
	Container        string   `env:"CONTAINER" envDefault:"data" doc:"container of the aggregates and their events, partitioned by /partitionKey"`
	Leases           string   `env:"LEASES" envDefault:"leases" doc:"container of the relay's leases, partitioned by /id"`
	Parked           string   `env:"PARKED" envDefault:"parked" doc:"container of parked events, partitioned by /partitionKey"`
}

// Postgres names the database. Both processes use it.
type Postgres struct {
	URL Secret `env:"URL" doc:"URL of the database, for example postgres://user:password@host:5432/contacts?sslmode=verify-full"`
	// The password of the URL does not change. These do, so they are read again for each new connection.
	PasswordFile    string `env:"PASSWORD_FILE" doc:"file with the password, instead of that of the URL; read again for each new connection, so that the password may be rotated"`
	PasswordCommand string `env:"PASSWORD_COMMAND" doc:"program that prints the password, with arguments separated by spaces and without a shell; run for each new connection"`
	Identity        string `env:"IDENTITY" envDefault:"none" oneof:"none|entra|aws" doc:"whose token is the password of each new connection: that of the Microsoft Entra identity of the process (Azure), or of its AWS credentials (RDS, Aurora)"`
	Schema          string `env:"SCHEMA" envDefault:"feedbox" check:"name" doc:"schema of the tables"`
	Migrate         bool   `env:"MIGRATE" envDefault:"false" doc:"create or migrate the schema at the start, which needs a role that owns it; default: only compare the version, and feedbox migrate migrates"`
	Ranges          int    `env:"RANGES" envDefault:"4" min:"1" max:"1024" doc:"feed ranges that relays share: 1, 2, 4 and so on; more of them split the leases of a running relay"`
}

// Firestore names the database. Both processes use it. The credential is that of
// Google's client: its variables, its files, or the identity of the machine or pod.
type Firestore struct {
	Project      string `env:"PROJECT" doc:"id of the Google Cloud project that has the database"`
	Database     string `env:"DATABASE" envDefault:"(default)" doc:"id of the database"`
	Ranges       int    `env:"RANGES" envDefault:"4" min:"1" max:"16" doc:"feed ranges that relays share: 1, 2, 4, 8 or 16; more of them split the leases of a running relay"`
	EmulatorHost string `env:"EMULATOR_HOST" doc:"host:port of Google's emulator, in the place of the service; default FIRESTORE_EMULATOR_HOST, as for Google's clients"`
}

// ServiceBus names the namespace and the topic. Only the relay uses it.
type ServiceBus struct {
	ConnectionString Secret   `env:"CONNECTION_STRING" doc:"connection string with a SAS key that may send; this or FEEDBOX_SERVICEBUS_NAMESPACE"`
	Namespace        string   `env:"NAMESPACE" doc:"host name of the namespace, for example contoso.servicebus.windows.net, used with DefaultAzureCredential"`
	Topic            string   `env:"TOPIC" envDefault:"contacts" doc:"topic that receives the events"`
	Topics           []string `env:"TOPICS" doc:"topics of events with some subjects, as subject=topic, separated by commas; default FEEDBOX_SERVICEBUS_TOPIC for all"`
	Shards           []string `env:"SHARDS" doc:"topics that share the keys by a stable hash, in the place of FEEDBOX_SERVICEBUS_TOPIC, separated by commas; TOPIC, or TOPIC@NAMESPACE in another namespace, used with DefaultAzureCredential; another list needs the procedure in cmd/feedbox/README.md"`
	Source           string   `env:"SOURCE" doc:"CloudEvents attribute source of the messages; default / and the name of the topic"`
	PackKeys         bool     `env:"PACK_KEYS" envDefault:"false" doc:"put events of several keys into one batch: much faster, for topics without partitions"`
}

// Shard is an entry of Shards. Namespace is empty for the default one.
type Shard struct{ Topic, Namespace string }

// String returns the entry as it is written.
func (s Shard) String() string {
	if s.Namespace == "" {
		return s.Topic
	}
	return s.Topic + "@" + s.Namespace
}

// ShardList returns Shards without spaces.
func (s ServiceBus) ShardList() []Shard {
	var list []Shard
	for _, entry := range s.Shards {
		topic, namespace, _ := strings.Cut(strings.TrimSpace(entry), "@")
		list = append(list, Shard{topic, namespace})
	}
	return list
}

// In returns the configuration of a namespace of Shards, with its topics; "" is the default one.
func (s ServiceBus) In(namespace string) ServiceBus {
	one, shards := s, s.ShardList()
	one.Shards = nil
	for _, shard := range shards {
		if shard.Namespace == namespace {
			one.Shards = append(one.Shards, shard.Topic)
		}
	}
	if namespace != "" {
		one.ConnectionString, one.Namespace, one.Topics = Secret{}, namespace, nil
	}
	if len(shards) > 0 {
		one.Topic = "" // it has no events
	}
	return one
}

// IsSet reports whether exactly one way to reach the namespace is configured.
func (s ServiceBus) IsSet() bool { return s.ConnectionString.IsSet() != (s.Namespace != "") }

// RabbitMQ names the broker and the exchange. Only the relay uses it.
type RabbitMQ struct {
	URL      Secret `env:"URL" doc:"URL of RabbitMQ with user and password: amqps://user:password@host/vhost; those of several members of a cluster are separated by commas"`
	Exchange string `env:"EXCHANGE" envDefault:"contacts" doc:"direct exchange that receives the events"`
	Source   string `env:"SOURCE" doc:"app id of the messages, at most 255 bytes; default / and the name of the exchange"`
	PackKeys bool   `env:"PACK_KEYS" envDefault:"false" doc:"put the events of a slot of keys that are sent together into one message: much less work for the broker; first upgrade all consumers, and use no headers exchange that chooses by action"`
}

// Members returns the URLs of the members of the cluster.
func (r RabbitMQ) Members() []string { return listOf(r.URL.Reveal()) }

// SQS names the queue. Only the relay uses it. The credential is that of the AWS SDK:
// its variables, its files, or the role of the machine or pod.
type SQS struct {
	QueueURL Address `env:"QUEUE_URL" check:"anonymous" doc:"URL of the FIFO queue that receives the events, for example https://sqs.eu-west-1.amazonaws.com/123456789012/contacts.fifo"`
	Region   string  `env:"REGION" doc:"region of the queue; default as the AWS SDK finds it, AWS_REGION for one"`
	Endpoint Address `env:"ENDPOINT" check:"anonymous" doc:"address of the service, for a server that behaves like it; default that of the region"`
	Source   string  `env:"SOURCE" doc:"CloudEvents attribute source of the messages; default the URL of the queue"`
}

// SNS names the topic. Only the relay uses it. The credential is that of the AWS SDK, and the region that
// in the ARN.
type SNS struct {
	TopicARN string  `env:"TOPIC_ARN" doc:"ARN of the FIFO topic that receives the events, for example arn:aws:sns:eu-west-1:123456789012:contacts.fifo"`
	Endpoint Address `env:"ENDPOINT" check:"anonymous" doc:"address of SNS and SQS, for a server that behaves like them; default those of the region"`
	Source   string  `env:"SOURCE" doc:"CloudEvents attribute source of the messages; default the ARN of the topic"`
}

// Region returns the region of the topic, or "".
func (s SNS) Region() string {
	if parts := strings.Split(s.TopicARN, ":"); len(parts) == 6 && parts[0] == "arn" && parts[2] == "sns" {
		return parts[3]
	}
	return ""
}

// Lease holds the timings of lease ownership. Zero Renew and Acquire are
// derived from Expiry when loading, so that changing Expiry alone is safe.
type Lease struct {
	Expiry  time.Duration `env:"EXPIRY" envDefault:"20s" min:"500ms" max:"1h" doc:"a lease not renewed for this long may be taken over"`
	Renew   time.Duration `env:"RENEW" min:"100ms" max:"30m" doc:"time between renewals of an owned lease, at most half of FEEDBOX_LEASE_EXPIRY; default a quarter of it"`
	Acquire time.Duration `env:"ACQUIRE" min:"100ms" max:"1h" doc:"time between searches for free or expired leases, at most FEEDBOX_LEASE_EXPIRY; default a quarter of it"`
}

// Log selects level and format of the log.
type Log struct {
	Level  string `env:"LEVEL" envDefault:"info" oneof:"debug|info|warn|error" doc:"lowest level that is logged"`
	Format string `env:"FORMAT" envDefault:"auto" oneof:"auto|json|text" doc:"auto writes coloured text on a terminal and JSON elsewhere"`
}
