package main

import (
	"context"
	"errors"
	"feedbox/infrastructure/verify"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// part starts a part of the service as a process of its own.
func (w *world) part(binary, name string) (kill func()) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), binary, name)
	cmd.Stderr = os.Stderr
	must(w.t, cmd.Start())
	return func() {
		_ = cmd.Process.Kill() // SIGKILL; it may be over already
		_ = cmd.Wait()
	}
}

// client changes orders until its time is over and keeps the history that the verifier
// needs. A request without an answer is sent again under its idempotency key.
type client struct {
	w       *world
	rnd     *rand.Rand
	acked   map[string]int
	orders  []string
	refused int
}

func (c *client) run(ctx context.Context, number int) {
	for n := 0; ctx.Err() == nil; n++ {
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

// send sends a request until it is answered, also beyond the end of ctx: what was sent once
// must be known.
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

// TestPartsAreKilled: API, relay and consumer are killed with SIGKILL again and again while
// orders change. Nothing is lost, doubled or out of order, and each event counts once.
func TestPartsAreKilled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t)
	binary := filepath.Join(t.TempDir(), "orders")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	names, kill := []string{"serve", "relay", "consume"}, map[string]func(){}
	for _, name := range names {
		kill[name] = w.part(binary, name)
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
	for _, i := range rnd.Perm(2 * len(names)) { // each twice
		time.Sleep(time.Duration(200+rnd.IntN(600)) * time.Millisecond)
		name := names[i%len(names)]
		kill[name]()
		kill[name] = w.part(binary, name)
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
	run.Aggregates, run.Events = w.stored()
	run.Messages = w.received(len(run.Events))
	t.Log(run.Summary())
	for _, broken := range run.Verify() {
		t.Error(broken)
	}
	events := map[string]int64{}
	for _, e := range run.Events {
		events[e.Key]++
	}
	for key, n := range events {
		w.eventually("the consumer has counted all events", func() bool { return w.total(key).Events >= n })
		if total := w.total(key); total.Events != n {
			t.Errorf("order %s: %d events, the consumer has counted %d", key, n, total.Events)
		}
	}
}

// stored reads what is in the store.
func (w *world) stored() (aggregates []verify.Aggregate, events []verify.Event) {
	w.t.Helper()
	container, err := w.client.NewContainer(database, "data")
	must(w.t, err)
	for pager := container.NewQueryItemsPager("SELECT * FROM c", azcosmos.NewPartitionKey(), nil); pager.More(); {
		page, err := pager.NextPage(w.t.Context())
		must(w.t, err)
		for _, raw := range page.Items {
			d, err := verify.DecodeDocument(raw)
			must(w.t, err)
			switch d.Kind {
			case verify.KindAggregate:
				aggregates = append(aggregates, d.Aggregate())
			case verify.KindEvent:
				events = append(events, d.Event())
			}
		}
	}
	return aggregates, events
}

// received takes all messages of the judge's subscription, and waits for more than expected
// for a while.
func (w *world) received(expected int) (messages []verify.Message) {
	w.t.Helper()
	for {
		patience := 30 * time.Second
		if len(messages) >= expected {
			patience = 2 * time.Second
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), patience)
		session, err := w.bus.Client().AcceptNextSessionForSubscription(ctx, topic, "judge", nil)
		cancel()
		if err != nil {
			return messages
		}
		for {
			ctx, cancel := context.WithTimeout(w.t.Context(), 300*time.Millisecond)
			got, err := session.ReceiveMessages(ctx, 1, nil) // of several the client may change the order
			cancel()
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				w.t.Fatal(err)
			}
			if len(got) == 0 {
				break
			}
			for _, m := range got {
				messages = append(messages, messageOf(m))
				must(w.t, session.CompleteMessage(w.t.Context(), m, nil))
			}
		}
		must(w.t, session.Close(w.t.Context()))
	}
}

func messageOf(m *azservicebus.ReceivedMessage) verify.Message {
	sequence, _ := m.ApplicationProperties["sequence"].(int64)
	version, _ := m.ApplicationProperties["aggregateVersion"].(int64)
	return verify.Message{ID: m.MessageID, Session: *m.SessionID, Subject: *m.Subject, Sequence: sequence, Version: version}
}
