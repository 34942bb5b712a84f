// Command run measures relays from PostgreSQL to RabbitMQ, or the growth of PostgreSQL's tables.
//
//	go run ./tests/bench/postgres/run [-only feedbox,packed,packed5000,handtuned] [-turns 3] [-events 200000] [-latency 20s]
//	go run ./tests/bench/postgres/run -bloat 1h [-ttl 5m] [-rate 200]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"feedbox/tests/bench/postgres"
	"feedbox/tests/bench/postgres/handtuned"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	bloat := flag.Duration("bloat", 0, "measure for so long how large the tables become, instead of the relays")
	ttl := flag.Duration("ttl", 5*time.Minute, "lifetime of events, requests and audit entries, with -bloat")
	rate := flag.Int("rate", 200, "changes a second, with -bloat")
	events := flag.Int("events", 200_000, "events of the backlog, a tenth of it for river and watermill")
	keys := flag.Int("keys", 20_000, "keys of the backlog")
	turns := flag.Int("turns", 3, "turns of each relay")
	only := flag.String("only", "", "relays to measure: "+strings.Join(postgres.Peers(), ", ")+"; default all")
	latency := flag.Duration("latency", 20*time.Second, "how long latency is measured, 0: not at all")
	perSecond := flag.Int("per-second", 1000, "events a second, for latency")
	relay := flag.Bool("handtuned", false, "be the hand-tuned relay")
	database := flag.String("database", "", "with -handtuned")
	broker := flag.String("broker", "", "with -handtuned")
	exchange := flag.String("exchange", "", "with -handtuned")
	flag.Parse()
	if *relay {
		return handtuned.Relay(ctx, *database, *broker, *exchange)
	}
	if *bloat > 0 {
		return postgres.Bloat{For: *bloat, TTL: *ttl, PerSecond: *rate, Out: os.Stdout}.Run(ctx)
	}
	o := postgres.Options{Backlog: postgres.Backlog{Events: *events, Keys: *keys, Size: 512}, Turns: *turns, Latency: *latency, PerSecond: *perSecond, Out: os.Stdout}
	if *only != "" {
		o.Only = strings.Split(*only, ",")
	}
	return postgres.Measure(ctx, o)
}
