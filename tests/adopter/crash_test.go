package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/lab/verify"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// part starts a part of the service as a separate process.
func (w *world) part(name string) (kill func()) {
	w.t.Helper()
	self, err := os.Executable()
	must(w.t, err)
	cmd := exec.CommandContext(w.t.Context(), self)
	cmd.Env = append(os.Environ(), "ORDERS_TEST_PART="+name)
	cmd.Stderr = os.Stderr
	must(w.t, cmd.Start())
	return func() {
		_ = cmd.Process.Kill() // SIGKILL; it may have ended already
		_ = cmd.Wait()
	}
}

// client changes orders until its context ends, and keeps the history for the verifier. A request
// without an answer is retried under its idempotency key.
type client struct {
	w       *world
	rnd     *rand.Rand
	acked   map[string]int
	orders  []string
	refused int
}

func (c *client) run(ctx context.Context, number int) {
	for n := 0; ctx.Err() == nil; n++ {
		time.Sleep(20 * time.Millisecond)
		key := fmt.Sprintf("c%d-%d", number, n)
		if len(c.orders) < 5 {
			if a := c.send(ctx, "", `{"customer":"Contoso"}`, key); a.view.ID != "" {
				c.orders = append(c.orders, a.view.ID)
				c.acked[a.view.ID]++
			}
			continue
		}
		id := c.orders[c.rnd.IntN(len(c.orders))]
		body := fmt.Sprintf(`{"sku":"pen","pieces":%d,"price":1}`, 1+c.rnd.IntN(20))
		switch a := c.send(ctx, "/"+id+"/add", body, key); a.status {
		case http.StatusNoContent:
			c.acked[id]++
		case 0:
		default:
			c.refused = a.status
		}
	}
}

// send retries a request until it is answered, even after the end of ctx, because the outcome of a
// sent request must be known.
func (c *client) send(ctx context.Context, path, body, key string) answer {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		a, err := c.w.call(context.WithoutCancel(ctx), http.MethodPost, path, body, "Idempotency-Key", key)
		if err == nil && a.status != http.StatusServiceUnavailable && a.status != http.StatusTooManyRequests {
			return a
		}
	}
	c.refused = http.StatusServiceUnavailable
	return answer{}
}

// API, relay and consumer are killed repeatedly with SIGKILL while orders change. No event is lost,
// duplicated or out of order, and each counts once.
func TestPartsAreKilled(t *testing.T) {
	seed := seedOf(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t)
	handled := filepath.Join(t.TempDir(), "handled.jsonl")
	t.Setenv("ORDERS_TEST_LOG", handled)
	names, kill := []string{"serve", "relay", "consume"}, map[string]func(){}
	for _, name := range names {
		kill[name] = w.part(name)
	}
	defer func() {
		for _, end := range kill {
			end()
		}
	}()
	w.up()

	ctx, stop := context.WithCancel(t.Context())
	clients := make([]*client, 4)
	var running sync.WaitGroup
	for i := range clients {
		clients[i] = &client{w: w, rnd: rand.New(rand.NewPCG(seed, uint64(i)+1)), acked: map[string]int{}}
		running.Go(func() { clients[i].run(ctx, i) })
	}
	for _, i := range rnd.Perm(2 * len(names)) { // each part twice
		time.Sleep(time.Duration(200+rnd.IntN(600)) * time.Millisecond)
		name := names[i%len(names)]
		kill[name]()
		kill[name] = w.part(name)
	}
	time.Sleep(500 * time.Millisecond)
	stop()
	running.Wait()

	run := verify.Run{Acked: map[string]int{}}
	for _, c := range clients {
		if c.refused != 0 {
			t.Errorf("a client was answered %d", c.refused)
		}
		for id, n := range c.acked {
			run.Acked[id] += n
		}
	}
	var err error
	run.Aggregates, run.Events, err = w.stored(t.Context())
	must(t, err)
	events := map[string]int64{}
	for _, e := range run.Events {
		events[e.Key]++
	}
	// The total time depends on the broker, so each step must make progress within a minute, with any order: the
	// broker decides which one is next, and keeps those that a killed consumer had received.
	counted := func() (sum int64, all bool) {
		all = true
		for key, n := range events {
			of := w.counted(key).Events
			sum, all = sum+of, all && of >= n
		}
		return sum, all
	}
	for sum, all := counted(); !all; {
		before := sum
		w.eventually("the consumer counts more events", func() bool {
			sum, all = counted()
			return sum > before
		})
	}
	for key, n := range events {
		if counted := w.counted(key).Events; counted != n {
			t.Errorf("order %s: %d events, the consumer has counted %d", key, n, counted)
		}
	}
	run.Consumed, run.Handled = true, readLog(t, handled)
	seen := map[string]bool{}
	for _, m := range run.Handled {
		if !seen[m.ID] {
			run.Messages = append(run.Messages, m)
		}
		seen[m.ID] = true
	}
	t.Log(run.Summary())
	for _, broken := range run.Verify() {
		t.Error(broken)
	}
}

// logged logs each event before it is handled, if ORDERS_TEST_LOG is set.
func logged(handler consumer.Handler) consumer.Handler {
	path := os.Getenv("ORDERS_TEST_LOG")
	if path == "" {
		return handler
	}
	return func(ctx context.Context, e *consumer.Event) error {
		line, err := json.Marshal(verify.Message{ID: e.ID, Session: e.Key, Subject: e.Action, Version: e.AggregateVersion, Sequence: e.Sequence})
		if err != nil {
			return err
		}
		log, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = log.Write(append(line, '\n'))
		if err := errors.Join(err, log.Close()); err != nil {
			return err
		}
		return handler(ctx, e)
	}
}

func readLog(t *testing.T, path string) (messages []verify.Message) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	for decoder := json.NewDecoder(bytes.NewReader(text)); decoder.More(); {
		var m verify.Message
		must(t, decoder.Decode(&m))
		messages = append(messages, m)
	}
	return messages
}
