package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/process/config"
)

// defaultDataDir is the data folder, relative to the working directory.
const defaultDataDir = ".feedbox"

// options are the flags of feedbox-dev; each has a working default.
type options struct {
	api             string
	ops             string
	page            string
	cosmos          string
	serviceBus      string
	serviceBusAdmin string
	cosmosCert      string        // file for the certificate of the Cosmos DB emulator; empty: no TLS
	cosmosVersions  time.Duration // its VersionRetention
	cosmosRetention bool          // its ContainerRetention
	serviceBusCert  string        // the same for the Service Bus emulator
	serviceBusIdle  bool          // its EndIdle
	throttle        int           // Throughput of the Cosmos DB emulator
	serviceBusCosts int           // its CreditsPerSecond
	serviceBusUnits int           // its MessagingUnits
	partitions      int
	dataDir         string
	ephemeral       bool
	readyFile       string
	logLevel        string
	config          string
	record          bool
	store           string // URL of a database to use instead of the Cosmos DB emulator
	broker          string // URL of a broker to use instead of the Service Bus emulator
	alone           bool   // only the emulators, without the service
	database        string
	containers      []string // NAME or NAME=/KEY, besides those of the relay
	topics          []string // TOPIC or TOPIC/SUBSCRIPTION, besides the demo topic
	play            playing

	allowed []string               // hosts that loopback addresses serve
	set     func(flag string) bool // reports whether the user gave the flag
	tuneBus func(*busemu.Options)  // for tests; may be nil
}

func (o *options) register(flags *pflag.FlagSet, service bool) {
	o.alone = !service
	o.database = database
	if service {
		flags.StringVar(&o.api, "api", "127.0.0.1:8080", "address of the contacts API")
		flags.StringVar(&o.page, "page", "127.0.0.1:8100", "address of the web page")
		flags.StringVar(&o.store, "store", "", "database instead of the Cosmos DB emulator: postgres://user:password@host:port/database or firestore://project/database; @FILE reads it from a file")
		flags.StringVar(&o.broker, "broker", "", "broker instead of the Service Bus emulator: amqp://user:password@host:port/vhost (RabbitMQ), the URL of an SQS FIFO queue, or the ARN of an SNS FIFO topic; @FILE reads it from a file")
		flags.StringVar(&o.ops, "ops", "127.0.0.1:8090", "address of the operations endpoints (health, metrics)")
	}
	flags.StringVar(&o.cosmos, "cosmos", "127.0.0.1:8081", "address of the Cosmos DB emulator")
	flags.StringVar(&o.serviceBus, "servicebus", "127.0.0.1:5672", "address of the Service Bus emulator (AMQP)")
	flags.StringVar(&o.serviceBusAdmin, "servicebus-admin", "127.0.0.1:5300", "address of the Service Bus emulator's admin API (HTTP)")
	flags.IntVar(&o.partitions, "partitions", 4, "physical partitions of the data container, 1 to 64")
	flags.StringVar(&o.dataDir, "data-dir", defaultDataDir, "data folder of the emulators")
	flags.BoolVar(&o.ephemeral, "ephemeral", false, "keep the data in memory only")
	flags.StringVar(&o.readyFile, "ready-file", "", "write the endpoints to this JSON file when ready")
	if !service {
		flags.StringVar(&o.cosmosCert, "cosmos-certificate", "", "serve Cosmos DB over HTTPS and write the certificate to this PEM file")
		flags.DurationVar(&o.cosmosVersions, "cosmos-versions", 0, "keep versions and deletes in Cosmos DB this long, as continuous backup does")
		flags.IntVar(&o.throttle, "throttle", 0, "throttle Cosmos DB: RU/s of each container without throughput of its own (0 = no limit)")
		flags.BoolVar(&o.cosmosRetention, "cosmos-container-retention", false, "keep versions and deletes for containers with a retentionDuration, as Microsoft's emulator does")
		flags.StringVar(&o.serviceBusCert, "servicebus-certificate", "", "serve Service Bus over TLS, too, and write the certificate to this PEM file")
		flags.BoolVar(&o.serviceBusIdle, "servicebus-end-idle", false, "close idle Service Bus links (10 min) and connections (5 min), as the service does")
		flags.IntVar(&o.serviceBusCosts, "servicebus-credits", 0, "throttle Service Bus to this many credits per second (message 1, management request 10; Standard tier 1000; 0 = no limit)")
		flags.IntVar(&o.serviceBusUnits, "servicebus-units", 0, "make Service Bus a Premium namespace of this many messaging units (4 MB/s in and out each; 0 = Standard)")
		flags.StringVar(&o.database, "database", database, "database of the containers")
		flags.StringArrayVar(&o.containers, "container", nil, "create also this container, NAME or NAME=/KEY (default key /partitionKey, documents may have a TTL); repeatable")
		flags.StringArrayVar(&o.topics, "topic", nil, "create also this topic with duplicate detection and a session subscription, TOPIC or TOPIC/SUBSCRIPTION (default "+subscription+"); repeatable")
		flags.StringVar(&o.config, "config", "", "create also the entities of this Config.json of the official Service Bus emulator")
	}
	if service {
		o.play.register(flags)
	}
	flags.BoolVar(&o.record, "record", false, "copy every message to the subscription "+recording+", for feedbox-dev dump")
	flags.StringVar(&o.logLevel, "log-level", "warn", "debug, info, warn or error")
	o.set = flags.Changed
}

// allowHosts notes the hosts that listeners on loopback addresses serve, those of the flags too. It
// returns environ with them, for API, relay and page.
func (o *options) allowHosts(environ []string) []string {
	const name = "FEEDBOX_ALLOWED_HOSTS"
	given, _ := config.Lookup(environ, name)
	o.allowed = append(strings.Split(given, ","), o.api, o.ops, o.page, o.cosmos, o.serviceBus, o.serviceBusAdmin)
	return append(slices.Clone(environ), name+"="+strings.Trim(strings.Join(o.allowed, ","), ","))
}

// storage describes the location of the data.
func (o *options) storage() string {
	if o.ephemeral {
		return "in memory, lost at exit"
	}
	return o.dataDir
}

// intent describes the parts that are about to start.
func (o *options) intent() string {
	parts := "starting the emulators of Cosmos DB and Service Bus"
	switch {
	case o.play.on:
		parts += ", the contacts API, " + strconv.Itoa(o.play.relays) + " relays as separate processes and a consumer"
	case !o.alone:
		parts += ", the contacts API, the relay and a demo subscriber"
	}
	return parts + "; data: " + o.storage()
}

// relayKeys has the containers of the relay with their partition keys.
var relayKeys = map[string]string{data: "/partitionKey", leases: "/id", parked: "/partitionKey"}

// validate returns an error for the first invalid flag.
func (o *options) validate() error {
	if o.partitions < 1 || o.partitions > 64 {
		return fmt.Errorf("--partitions %d: give a number from 1 to 64", o.partitions)
	}
	if o.cosmosVersions < 0 || o.cosmosVersions%time.Minute != 0 {
		return fmt.Errorf("--cosmos-versions %s: give whole minutes, for example 10m", o.cosmosVersions)
	}
	if o.cosmosVersions > 0 && o.cosmosRetention {
		return fmt.Errorf("--cosmos-versions and --cosmos-container-retention exclude each other: leave one out")
	}
	if o.throttle < 0 {
		return fmt.Errorf("--throttle %d: give a number from 0", o.throttle)
	}
	if o.serviceBusUnits < 0 || o.serviceBusUnits > 0 && o.serviceBusCosts > 0 {
		return fmt.Errorf("--servicebus-units %d: give a number from 0, without --servicebus-credits", o.serviceBusUnits)
	}
	if o.serviceBusCosts < 0 {
		return fmt.Errorf("--servicebus-credits %d: give a number from 0", o.serviceBusCosts)
	}
	for _, c := range o.containers {
		if name, key, given := strings.Cut(c, "="); name == "" || given && (len(key) < 2 || key[0] != '/') {
			return fmt.Errorf("--container %q: give NAME or NAME=/KEY, for example orders=/customerId", c)
		} else if own := relayKeys[name]; given && own != "" && key != own {
			return fmt.Errorf("--container %q: the relay needs this container with the key %s: choose another name", c, own)
		}
	}
	for _, t := range o.topics {
		if name, sub, given := strings.Cut(t, "/"); name == "" || given && sub == "" {
			return fmt.Errorf("--topic %q: give TOPIC or TOPIC/SUBSCRIPTION, for example orders/billing", t)
		}
	}
	if err := o.play.check(o.set); err != nil {
		return err
	}
	o.ephemeral = o.ephemeral || o.play.on
	if o.play.script {
		o.page = "" // a script has no browser
	}
	if (o.store != "" || o.broker != "") && o.play.on {
		return fmt.Errorf("--store and --broker exclude --play: the playground injects faults into the emulators")
	}
	if o.ephemeral && o.set("data-dir") {
		return fmt.Errorf("--ephemeral and --data-dir exclude each other: leave one out")
	}
	if !o.ephemeral && o.dataDir == "" {
		return fmt.Errorf("--data-dir is empty: give a folder, or use --ephemeral")
	}
	for flag, addr := range map[string]string{
		"api": o.api, "ops": o.ops, "page": o.page, "cosmos": o.cosmos, "servicebus": o.serviceBus, "servicebus-admin": o.serviceBusAdmin,
	} {
		if addr == "" {
			continue // not a flag of this command
		}
		_, port, err := net.SplitHostPort(addr)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil {
			return fmt.Errorf("--%s %q: give host:port with a port up to 65535, for example 127.0.0.1:0", flag, addr)
		}
	}
	if o.readyFile != "" {
		if folder, err := os.Stat(filepath.Dir(o.readyFile)); err != nil || !folder.IsDir() {
			return fmt.Errorf("--ready-file %s: there is no folder %s: create it, or give another file", o.readyFile, filepath.Dir(o.readyFile))
		}
	}
	return nil
}
