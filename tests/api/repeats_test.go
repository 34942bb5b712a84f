// Package api tests the contacts API as a process: acknowledged changes must survive kill -9.
package api

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/tests/servers"
	"feedbox/tests/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// F3: each create is sent three times concurrently under one key, while the API is killed with -9 and
// restarted. Each key results in one contact and one event.
func TestRepeatedCreatesSurviveKills(t *testing.T) {
	const (
		keys, copies = 1000, 3
		clients      = 24
		kills        = 3
	)
	binaries := testkit.Build(t)
	_, e := testkit.StartDev(t, binaries, "emulators", "--ephemeral",
		"--cosmos", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--servicebus-admin", "127.0.0.1:0")
	service := &service{t: t, binaries: binaries, endpoints: e, address: servers.Address(t)}
	service.start()

	load := &creates{
		base:     "http://" + service.address,
		client:   &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}, Timeout: 10 * time.Second},
		outcomes: make([]outcome, keys),
	}
	defer load.client.CloseIdleConnections()
	jobs := make(chan int)
	var senders sync.WaitGroup
	for range clients {
		senders.Go(func() {
			for key := range jobs {
				load.send(t.Context(), key)
			}
		})
	}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	for n := range keys * copies {
		// A kill happens while requests are in flight.
		if n%(keys*copies/(kills+1)) == 0 && n > 0 && n/(keys*copies/(kills+1)) <= kills {
			service.process.Kill()
			service.start()
		}
		select {
		case jobs <- n / copies: // the copies of a key are adjacent, so that they run concurrently
		case <-ctx.Done():
			t.Fatal("the creates did not end in time")
		}
	}
	close(jobs)
	senders.Wait()

	created := 0
	for key := range load.outcomes {
		o := &load.outcomes[key]
		if len(o.locations) != 1 || o.created > 1 || o.created+o.replayed != copies {
			t.Errorf("key %d: %d created, %d replayed, contacts %v", key, o.created, o.replayed, o.locations)
		}
		created += o.created
	}
	contacts, events := testkit.ReadStore(t.Context(), t, e.ContainerClient(t, e.Container))
	if len(contacts) != keys || len(events) != keys {
		t.Errorf("%d contacts and %d events are stored, want %d of each", len(contacts), len(events), keys)
	}
	for _, event := range events {
		if event.Action != "ContactCreatedEvent" {
			t.Errorf("an event is %s", event.Action)
		}
	}
	if load.retries.Load() == 0 {
		t.Error("no kill interrupted a request: the test proves nothing")
	}
	t.Logf("%d keys sent %d times: %d answered as created, %d contacts, %d events; %d kills, %d requests had to be sent again",
		keys, copies, created, len(contacts), len(events), kills, load.retries.Load())
	testkit.Record(t, testkit.Result{
		Fault: "F3", Name: "kill -9 of the API among creates sent three times under one key", Injections: kills, Of: kills, Events: int64(len(events)),
		Lost: int64(max(0, keys-len(contacts))), DuplicatesSeen: int64(max(0, len(contacts)-keys)),
		Note: "1,000 keys; duplicates are contacts too many, lost are contacts too few",
	})
}

// service is the API process, always at the same address.
type service struct {
	t         *testing.T
	binaries  testkit.Binaries
	endpoints testkit.Endpoints
	address   string
	process   *testkit.Process
}

func (s *service) start() {
	s.process = testkit.Start(s.t, "feedbox api", s.binaries.Feedbox, s.endpoints.ServiceEnv("FEEDBOX_API_LISTEN="+s.address, "FEEDBOX_LOG_FORMAT=json"), "api")
}

// creates sends creates until they are answered.
type creates struct {
	base    string
	client  *http.Client
	retries atomic.Int64

	mu       sync.Mutex // guards outcomes
	outcomes []outcome
}

// outcome is the answers to the copies of one create.
type outcome struct {
	created, replayed int
	locations         map[string]bool
}

// send retries one create until it succeeds.
func (c *creates) send(ctx context.Context, key int) {
	for ctx.Err() == nil {
		status, location, err := c.post(ctx, key)
		if err == nil && (status == http.StatusCreated || status == http.StatusOK) {
			c.mu.Lock()
			defer c.mu.Unlock()
			o := &c.outcomes[key]
			if o.locations == nil {
				o.locations = map[string]bool{}
			}
			o.locations[location] = true
			if status == http.StatusCreated {
				o.created++
			} else {
				o.replayed++
			}
			return
		}
		c.retries.Add(1)
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (c *creates) post(ctx context.Context, key int) (status int, location string, err error) {
	body := fmt.Sprintf(`{"firstName":"First%[1]d","lastName":"Last%[1]d","email":"c%[1]d@contoso.example","companyName":"Contoso"}`, key)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/api/contacts", bytes.NewBufferString(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", fmt.Sprintf("create-%d", key))
	response, err := c.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0, "", err
	}
	return response.StatusCode, response.Header.Get("Location"), nil
}
