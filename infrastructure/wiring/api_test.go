package wiring

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/fx"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/process/config"
)

// heldStore holds all requests until it is released.
type heldStore struct {
	next     *http.Client
	released chan struct{}
}

func (h *heldStore) Do(r *http.Request) (*http.Response, error) {
	select {
	case <-h.released:
		return h.next.Do(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// The API is not ready before the store has answered. A stop ends the readiness first, and
// the API still accepts requests for the drain delay.
func TestReadinessEndsBeforeTheListener(t *testing.T) {
	const delay = 2 * time.Second
	emulator := cosmosemu.StartT(t, nil)
	if err := emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1}); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.LoadAPI([]string{
		"FEEDBOX_COSMOS_ENDPOINT=" + emulator.Endpoint(), "FEEDBOX_COSMOS_KEY=" + emulator.Key(), "FEEDBOX_API_DRAIN_DELAY=" + delay.String(),
	})
	if err != nil {
		t.Fatal(err)
	}
	sockets, err := Listen(t.Context(), "127.0.0.1:0", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	store := &heldStore{next: emulator.HTTPClient(), released: make(chan struct{})}
	app := fx.New(API(cfg, Params{Sockets: sockets, Log: slog.New(slog.DiscardHandler), CosmosTransport: store}))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, app, nil) }()

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	get := func(url string) (int, string, error) {
		response, err := client.Get(url)
		if err != nil {
			return 0, "", err
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		return response.StatusCode, string(body), err
	}
	ready, contacts := "http://"+sockets.Ops.Addr().String()+"/readyz", "http://"+sockets.API.Addr().String()+"/api/contacts"
	for range 3 {
		if status, body, err := get(ready); status != http.StatusServiceUnavailable || !strings.Contains(body, "has not answered yet") {
			t.Errorf("before the store's first answer: %d %s %v", status, body, err)
		}
	}
	close(store.released)
	until(t, "ready", func() bool { status, _, _ := get(ready); return status == http.StatusOK })
	if status, body, err := get(contacts); status != http.StatusOK || !json.Valid([]byte(body)) {
		t.Errorf("when ready: %d %s %v", status, body, err)
	}

	stopped := time.Now()
	stop()
	until(t, "not ready", func() bool { status, _, _ := get(ready); return status == http.StatusServiceUnavailable })
	for served := 0; ; served++ {
		status, _, err := get(contacts) // each on a new connection
		if err == nil && status == http.StatusOK {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		if took := time.Since(stopped); took < delay || served == 0 {
			t.Errorf("%v after the stop, with %d requests served, a request ends with %d %v; the delay is %v", took, served, status, err, delay)
		}
		break
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(deadline) {
			t.Fatal(fmt.Sprint("it did not become ", what))
		}
		time.Sleep(time.Millisecond)
	}
}
