package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/pflag"

	"feedbox/infrastructure/emulator/busemu"
)

// defaultDataDir is where the data are, relative to where feedbox-dev was started.
const defaultDataDir = ".feedbox"

// options are the flags of feedbox-dev; each has a working default.
type options struct {
	api             string
	ops             string
	page            string
	cosmos          string
	serviceBus      string
	serviceBusAdmin string
	cosmosCert      string // file for the certificate of the Cosmos DB emulator; empty: no TLS
	serviceBusCert  string // the same for the Service Bus emulator
	serviceBusIdle  bool   // its EndIdle
	serviceBusCosts int    // its CreditsPerSecond
	partitions      int
	dataDir         string
	ephemeral       bool
	readyFile       string
	logLevel        string
	config          string
	record          bool
	store           string // URL of a database that serves in the place of the Cosmos DB emulator
	broker          string // URL of a broker that serves in the place of the Service Bus emulator
	alone           bool   // the emulators without the service
	play            playing

	set     func(flag string) bool // whether the user gave the flag
	tuneBus func(*busemu.Options)  // for tests; may be nil
}

func (o *options) register(flags *pflag.FlagSet, service bool) {
	o.alone = !service
	if service {
		flags.StringVar(&o.api, "api", "127.0.0.1:8080", "address of the contacts API")
		flags.StringVar(&o.page, "page", "127.0.0.1:8100", "address of the page for a browser")
		flags.StringVar(&o.store, "store", "", "keep contacts and events in this database, postgres://user:password@host:port/database or firestore://project/database, in the place of the Cosmos DB emulator")
		flags.StringVar(&o.broker, "broker", "", "send events to this broker, amqp://user:password@host:port/vhost of RabbitMQ or the URL of a FIFO queue of SQS, in the place of the Service Bus emulator")
		flags.StringVar(&o.ops, "ops", "127.0.0.1:8090", "address of the operations endpoints (health, metrics)")
	}
	flags.StringVar(&o.cosmos, "cosmos", "127.0.0.1:8081", "address of the Cosmos DB emulator")
	flags.StringVar(&o.serviceBus, "servicebus", "127.0.0.1:5672", "address of the Service Bus emulator (AMQP)")
	flags.StringVar(&o.serviceBusAdmin, "servicebus-admin", "127.0.0.1:5300", "address of the Service Bus emulator's admin API (HTTP)")
	flags.IntVar(&o.partitions, "partitions", 4, "physical partitions of the data container, 1 to 64")
	flags.StringVar(&o.dataDir, "data-dir", defaultDataDir, "folder of the emulators' data")
	flags.BoolVar(&o.ephemeral, "ephemeral", false, "keep the emulators' data in memory and forget it at exit")
	flags.StringVar(&o.readyFile, "ready-file", "", "write the endpoints to this JSON file once everything answers")
	if !service {
		flags.StringVar(&o.cosmosCert, "cosmos-certificate", "", "serve the Cosmos DB emulator by HTTPS and write the certificate clients must trust to this PEM file")
		flags.StringVar(&o.serviceBusCert, "servicebus-certificate", "", "serve the Service Bus emulator by TLS too, its admin API by HTTPS, and write the certificate clients must trust to this PEM file")
		flags.BoolVar(&o.serviceBusIdle, "servicebus-end-idle", false, "end idle links of the Service Bus emulator after ten minutes and connections without links after five, as the service does")
		flags.IntVar(&o.serviceBusCosts, "servicebus-credits", 0, "throttle the Service Bus emulator to so many credits a second: one for a message sent or delivered, ten for a management request; the service's Standard tier has 1000; 0 is no limit")
		flags.StringVar(&o.config, "config", "", "create the entities of this Config.json of the official Service Bus emulator, too")
	}
	if service {
		o.play.register(flags)
	}
	flags.BoolVar(&o.record, "record", false, "keep a copy of every message in the subscription "+recording+", for feedbox-dev dump")
	flags.StringVar(&o.logLevel, "log-level", "warn", "debug, info, warn or error")
	o.set = flags.Changed
}

// storage says where the data are.
func (o *options) storage() string {
	if o.ephemeral {
		return "in memory, gone at exit"
	}
	return o.dataDir
}

// intent says what is about to start.
func (o *options) intent() string {
	what := "starting the emulators of Cosmos DB and Service Bus"
	switch {
	case o.play.on:
		what += ", the contacts API, " + strconv.Itoa(o.play.relays) + " relays as processes of their own and a consumer"
	case !o.alone:
		what += ", the contacts API, the relay and a demo subscriber"
	}
	return what + "; data: " + o.storage()
}

// validate reports the first flag that cannot work, in words a user can act on.
func (o *options) validate() error {
	if o.partitions < 1 || o.partitions > 64 {
		return fmt.Errorf("--partitions %d: give a number from 1 to 64", o.partitions)
	}
	if o.serviceBusCosts < 0 {
		return fmt.Errorf("--servicebus-credits %d: give a number from 0", o.serviceBusCosts)
	}
	if err := o.play.check(o.set); err != nil {
		return err
	}
	o.ephemeral = o.ephemeral || o.play.on
	if o.play.script {
		o.page = "" // nobody looks
	}
	if (o.store != "" || o.broker != "") && o.play.on {
		return fmt.Errorf("--store and --broker do not go with --play: the playground breaks the emulators")
	}
	if o.ephemeral && o.set("data-dir") {
		return fmt.Errorf("--ephemeral and --data-dir exclude each other: leave one out")
	}
	if !o.ephemeral && o.dataDir == "" {
		return fmt.Errorf("--data-dir is empty: name a folder, or use --ephemeral")
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
			return fmt.Errorf("--ready-file %s: there is no folder %s: make it, or name another file", o.readyFile, filepath.Dir(o.readyFile))
		}
	}
	return nil
}
