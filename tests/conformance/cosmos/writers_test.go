//go:build conformance

package cosmos

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/lab/wire/cosmoswire"
	"feedbox/infrastructure/store/postgres"
	"feedbox/tests/servers"
	"feedbox/tests/testkit"
)

// ownService is the page whose programs and settings are run unchanged.
const ownService = "../../../cmd/feedbox/OWN-SERVICE.md"

// TestWriters runs the programs of the page "Use the relay with your own service". A relay
// with the settings of the page sends their events. Some answers to their transactions are
// lost, on Cosmos DB.
func TestWriters(t *testing.T) {
	text, err := os.ReadFile(ownService)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for name, c := range map[string]struct {
		sdk      *sdk
		script   string
		code     *regexp.Regexp
		postgres bool
		settings []string
		bodies   []string // the bodies of the two messages
	}{
		"Python": {
			sdk: python, script: "order.py", code: regexp.MustCompile("(?s)```python\n(.*?)```"),
			bodies: []string{`{"action":"OrderPlaced","createdAt":"","sequence":1,"total":120}`, `{"action":"OrderPaid","amount":120,"createdAt":"","sequence":2}`},
		},
		"JavaScript": {
			sdk: javascript, script: "order.mjs", code: regexp.MustCompile("(?s)```js\n(.*?)```"),
			settings: exports(t, page, "settings of the JavaScript program"),
			bodies:   []string{`{"total":120}`, `{"amount":120}`},
		},
		"Python on PostgreSQL": {
			sdk: python, script: "order.py", code: regexp.MustCompile("(?s)<!-- Python on PostgreSQL -->\n```python\n(.*?)```"), postgres: true, bodies: emitted,
		},
		"JavaScript on PostgreSQL": {
			sdk: javascript, script: "order.mjs", code: regexp.MustCompile("(?s)<!-- JavaScript on PostgreSQL -->\n```js\n(.*?)```"), postgres: true, bodies: emitted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			code := c.code.FindStringSubmatch(page)
			if code == nil {
				t.Fatalf("%s has no program in %s", ownService, name)
			}
			dir := c.sdk.folder(t, "the writer of OWN-SERVICE.md was")
			if err := os.WriteFile(filepath.Join(dir, c.script), []byte(code[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			b := testkit.Build(t)
			var database []string // its address, for the program
			if c.postgres {
				c.settings, database = shop(t)
			}
			_, e := testkit.StartDev(t, b, testkit.EmulatorPorts("--ephemeral")...)
			orders := []string{"order-1", "order-2", "order-3"}
			for i, order := range orders {
				if i > 0 && !c.postgres {
					loseAnswers(t, e.CosmosEndpoint, i) // of one attempt, and of two
				}
				if _, err := c.sdk.run(t, dir, e.ServiceEnv(slices.Concat(c.settings, database)...), c.script, order); err != nil {
					t.Fatalf("%s: %v", order, err)
				}
			}
			received := receive(t, e)
			relay := testkit.StartRelay(t, b, e, "relay", c.settings...)
			testkit.Eventually(t, time.Minute, "six events", func() bool {
				if relay.Ended() {
					t.Fatalf("the relay ended: %s", relay.Output())
				}
				return received.count() >= 2*len(orders)
			})
			time.Sleep(time.Second) // more would be too many
			for _, order := range orders {
				received.check(t, order, c.bodies)
			}
			if n := received.count(); n != 2*len(orders) {
				t.Errorf("%d messages, want %d", n, 2*len(orders))
			}
		})
	}
}

// emitted are the bodies of events that the SQL function made.
var emitted = []string{
	`{"action":"OrderPlaced","createdAt":"","id":"","schemaVersion":1,"sequence":1,"total":120}`,
	`{"action":"OrderPaid","amount":120,"createdAt":"","id":"","schemaVersion":1,"sequence":2}`,
}

// shop starts a database with the tables of Feedbox and of a shop, whose role may only emit events. It
// returns the settings of the relay and the variable of the programs.
func shop(t *testing.T) (relay, program []string) {
	t.Helper()
	url := servers.StartPostgres(t).Database(t)
	db, err := postgres.Open(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), `CREATE ROLE shop LOGIN; `+db.EmitGrants("shop")+`; CREATE TABLE public.orders (id text PRIMARY KEY, state text); GRANT SELECT, INSERT, UPDATE ON public.orders TO shop`); err != nil {
		t.Fatal(err)
	}
	return []string{"FEEDBOX_STORE=postgres", "FEEDBOX_POSTGRES_URL=" + url}, []string{"DATABASE_URL=" + strings.Replace(url, "feedbox@", "shop@", 1)}
}

// exports returns the variables that the block after a mark of the page sets.
func exports(t *testing.T, page, mark string) (env []string) {
	t.Helper()
	_, block, _ := strings.Cut(page, "<!-- "+mark+" -->\n```sh\n")
	block, _, found := strings.Cut(block, "```")
	if !found {
		t.Fatalf("%s has no block %q", ownService, mark)
	}
	for _, m := range regexp.MustCompile(`(?m)^export (\S+=\S+)`).FindAllStringSubmatch(block, -1) {
		env = append(env, m[1])
	}
	return env
}

// loseAnswers makes the emulator store the next transactions and drop the answers.
func loseAnswers(t *testing.T, endpoint string, times int) {
	t.Helper()
	w := &cosmoswire.Target{Endpoint: endpoint}
	if err := w.Control(t.Context(), "faults", map[string]any{"operation": cosmosemu.OpBatch, "times": times, "execute": true, "loss": "reset"}); err != nil {
		t.Fatal(err)
	}
}

// mailbox holds the events of a subscription by key.
type mailbox struct {
	mu   sync.Mutex // guards keys
	keys map[string][]*consumer.Event
}

func receive(t *testing.T, e testkit.Endpoints) *mailbox {
	t.Helper()
	box := &mailbox{keys: map[string][]*consumer.Event{}}
	s, err := subscriber.NewSessionProcessor(servicebus.ClientConfig{ConnectionString: e.ServiceBusConnectionString}, subscriber.Subscription(e.Topic, e.Subscription), func(_ context.Context, e *consumer.Event) error {
		box.mu.Lock()
		defer box.mu.Unlock()
		box.keys[e.Key] = append(box.keys[e.Key], e)
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(ctx); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return box
}

func (m *mailbox) count() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, events := range m.keys {
		n += len(events)
	}
	return n
}

// check compares the events of an order: placed, then paid.
func (m *mailbox) check(t *testing.T, order string, bodies []string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	events := m.keys[order]
	if len(events) != 2 {
		t.Fatalf("%s: %d events, want 2", order, len(events))
	}
	for i, action := range []string{"OrderPlaced", "OrderPaid"} {
		e := events[i]
		if e.Action != action || e.Sequence != int64(i+1) || e.ID == "" {
			t.Errorf("%s: event %d is %q (%s) with the sequence %d, want %s with %d", order, i, e.Action, e.ID, e.Sequence, action, i+1)
		}
		var body map[string]any
		if err := json.Unmarshal(e.Body, &body); err != nil {
			t.Fatal(err)
		}
		if _, is := body["createdAt"]; is {
			body["createdAt"] = "" // differs from run to run
		}
		if body["id"] == e.ID {
			body["id"] = "" // the same
		}
		if text, _ := json.Marshal(body); string(text) != bodies[i] {
			t.Errorf("%s: event %d holds %s, want %s", order, i, text, bodies[i])
		}
	}
}
