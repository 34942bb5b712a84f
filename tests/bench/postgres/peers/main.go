// Command peers has third-party relays for the benchmark of package postgres: River, with a
// job per event, and Watermill's forwarder. It is a separate module, so that the service does
// not depend on them.
//
//	peers river|watermill fill|relay -database URL -broker URL -exchange NAME
//
// fill reads events from standard input, one per line: queue, key, id, sequence, action and
// data, separated by tabs.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"
)

// event is an event of the backlog.
type event struct {
	Queue, Key, ID string
	Sequence       int64
	Action, Data   string
}

// place has the addresses at which a relay reads and sends.
type place struct{ database, broker, exchange string }

var relays = map[string]struct {
	fill  func(ctx context.Context, pool *pgxpool.Pool, events []event) error
	relay func(ctx context.Context, pool *pgxpool.Pool, p place) error
}{
	"river":     {fillRiver, relayRiver},
	"watermill": {fillWatermill, relayWatermill},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if len(os.Args) < 3 {
		return fmt.Errorf("usage: peers river|watermill fill|relay -database URL -broker URL -exchange NAME")
	}
	r, known := relays[os.Args[1]]
	if !known {
		return fmt.Errorf("%q is neither river nor watermill", os.Args[1])
	}
	var p place
	flags := flag.NewFlagSet("peers", flag.ExitOnError)
	flags.StringVar(&p.database, "database", "", "URL of PostgreSQL")
	flags.StringVar(&p.broker, "broker", "", "URL of RabbitMQ")
	flags.StringVar(&p.exchange, "exchange", "", "a direct exchange")
	if err := flags.Parse(os.Args[3:]); err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, p.database)
	if err != nil {
		return err
	}
	defer pool.Close()
	if os.Args[2] == "relay" {
		return r.relay(ctx, pool, p)
	}
	events, err := read()
	if err != nil {
		return err
	}
	return r.fill(ctx, pool, events)
}

func read() (events []event, err error) {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		f := strings.SplitN(lines.Text(), "\t", 6)
		if len(f) != 6 {
			return nil, fmt.Errorf("not an event: %q", lines.Text())
		}
		sequence, err := strconv.ParseInt(f[3], 10, 64)
		if err != nil {
			return nil, err
		}
		events = append(events, event{Queue: f[0], Key: f[1], ID: f[2], Sequence: sequence, Action: f[4], Data: f[5]})
	}
	return events, lines.Err()
}
