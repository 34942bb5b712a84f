package postgres

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/infrastructure/broker/rabbitmq"
	"feedbox/tests/bench/postgres/handtuned"
	"feedbox/tests/servers"
)

// peer is a measured relay.
type peer struct {
	name   string
	slow   bool // gets a tenth of the backlog
	again  bool // can send its backlog again
	fill   func(ctx context.Context, b Backlog, t turn) error
	commit func(ctx context.Context, pool *pgxpool.Pool, b Backlog, n int) error // one event of the backlog
	relay  func(ctx context.Context, t turn) *exec.Cmd
	direct bool // its exchange routes by the queue's number, not by the slot
}

// turn has the addresses at which a relay reads and sends.
type turn struct {
	world            *world
	number           int
	database, broker string
	exchange         string
}

// world has the programs, which are built once.
type world struct {
	dir      string // of programs
	postgres *servers.Postgres
	rabbitmq *servers.RabbitMQ
	turns    int
}

// Peers returns the names of all relays.
func Peers() []string {
	var names []string
	for _, p := range peers {
		names = append(names, p.name)
	}
	return names
}

var peers = []peer{
	feedbox("feedbox"),
	feedbox("packed", "FEEDBOX_RABBITMQ_PACK_KEYS=true"),
	feedbox("packed5000", "FEEDBOX_RABBITMQ_PACK_KEYS=true", "FEEDBOX_RELAY_MAX_ITEMS=5000"),
	{
		name: "handtuned", direct: true, fill: fillHandtuned, commit: commitHandtuned,
		relay: func(ctx context.Context, t turn) *exec.Cmd {
			self, _ := os.Executable() // always known on Linux
			return exec.CommandContext(ctx, self, "-handtuned", "-database", t.database, "-broker", t.broker, "-exchange", t.exchange)
		},
	},
	other("river"),
	other("watermill"),
}

// feedbox returns our relay with more variables.
func feedbox(name string, more ...string) peer {
	return peer{
		name: name, again: true, fill: fillFeedbox, commit: commitFeedbox,
		relay: func(ctx context.Context, t turn) *exec.Cmd {
			// A processor of another name must adopt the parked events. In a database without tables
			// that fails, and the relay is the first.
			const script = `"$0" parked adopt --yes; exec "$0" relay`
			cmd := exec.CommandContext(ctx, "sh", "-c", script, filepath.Join(t.world.dir, "feedbox")) //nolint:gosec // what was just built
			cmd.Env = append(append(os.Environ(),
				"FEEDBOX_STORE=postgres", "FEEDBOX_POSTGRES_URL="+t.database, "FEEDBOX_POSTGRES_MIGRATE=true", "FEEDBOX_BROKER=rabbitmq", "FEEDBOX_RABBITMQ_URL="+t.broker,
				"FEEDBOX_RABBITMQ_EXCHANGE="+t.exchange, "FEEDBOX_PROCESSOR=turn"+strconv.Itoa(t.number), "FEEDBOX_LOG_LEVEL=warn",
			), more...)
			return cmd
		},
	}
}

// other returns a peer in the module peers. Its program creates its tables.
func other(name string) peer {
	command := func(ctx context.Context, t turn, verb string, args ...string) *exec.Cmd {
		args = append([]string{name, verb, "-database", t.database, "-broker", t.broker, "-exchange", t.exchange}, args...)
		return exec.CommandContext(ctx, filepath.Join(t.world.dir, "peers"), args...) //nolint:gosec // what was just built
	}
	return peer{
		name: name, slow: true, direct: true,
		relay: func(ctx context.Context, t turn) *exec.Cmd { return command(ctx, t, "relay") },
		fill: func(ctx context.Context, b Backlog, t turn) error {
			cmd := command(ctx, t, "fill")
			events := &bytes.Buffer{}
			for n := range b.Events {
				key, id, sequence, data := b.event(n)
				_, queue := handtuned.Place(key)
				fmt.Fprintf(events, "%d\t%s\t%s\t%d\t%s\t%s\n", queue, key, id, sequence, action, data)
			}
			cmd.Stdin = events
			if text, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("store the backlog of %s: %w: %s", name, err, text)
			}
			return nil
		},
	}
}

// build builds the other programs, from the root of the repository.
func (w *world) build(ctx context.Context, chosen []peer) error {
	for _, p := range chosen {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", w.dir+"/", "./cmd/feedbox") //nolint:gosec // a folder of ours
		if p.slow {
			cmd.Dir = filepath.Join("tests", "bench", "postgres", "peers")
			cmd.Args[len(cmd.Args)-1] = "."
		}
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s (from the root of the repository): %w: %s", p.name, err, text)
		}
	}
	return nil
}

// declare creates the exchange of a turn and its queues, and returns the names of the queues.
func (p *peer) declare(ctx context.Context, t turn) ([]string, error) {
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: t.broker})
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	group := rabbitmq.Group{Name: t.exchange, Queues: handtuned.Queues}
	if err := rabbitmq.Declare(ctx, client, t.exchange, group); err != nil {
		return nil, err
	}
	conn, err := amqp.Dial(t.broker)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	queues := make([]string, handtuned.Queues)
	for n := range queues {
		queues[n] = fmt.Sprintf("%s.%d", t.exchange, n)
	}
	if !p.direct {
		return queues, nil
	}
	if err := ch.ExchangeDelete(t.exchange, false, false); err != nil {
		return nil, err
	}
	if err := ch.ExchangeDeclare(t.exchange, amqp.ExchangeDirect, true, false, false, false, nil); err != nil {
		return nil, err
	}
	for n, queue := range queues {
		if err := ch.QueueBind(queue, strconv.Itoa(n), t.exchange, false, nil); err != nil {
			return nil, err
		}
	}
	return queues, nil
}

// remove deletes the exchange and the queues.
func (t turn) remove(queues []string) error {
	conn, err := amqp.Dial(t.broker)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	for _, queue := range append(queues, t.exchange+".dead-letters") {
		if _, err := ch.QueueDelete(queue, false, false, false); err != nil {
			return err
		}
	}
	return ch.ExchangeDelete(t.exchange, false, false)
}
