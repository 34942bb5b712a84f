package testkit

import (
	"context"
	"net/http"
	"testing"
	"time"

	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/lab/workload"
)

// Workload changes contacts through the HTTP API; see package workload.
type Workload = workload.Load

// HTTPClient returns a client for a number of writers. Each client has its own connections, so that
// tests do not affect each other.
func HTTPClient(t testing.TB, writers int) *http.Client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: writers}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

// Background runs load until stop is called. stop waits for it and fails the test if the load returned
// an error.
func Background(t *testing.T, load *Workload) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- load.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the workload: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// History sums the histories of loads for the verifier. Loads must not share contacts.
type History struct {
	Acked, Unknown map[string]int
	LostCreates    int
	Requests       int // acknowledged or unknown
}

// Add adds the history of a load that has ended.
func (h *History) Add(load *Workload) {
	if h.Acked == nil {
		h.Acked, h.Unknown = map[string]int{}, map[string]int{}
	}
	acked, unknown, done := load.History()
	for id, n := range acked {
		h.Acked[id] += n
	}
	for id, n := range unknown {
		h.Unknown[id] += n
	}
	h.LostCreates += load.LostCreates()
	h.Requests += done
}

// Run returns a run for the verifier with this history.
func (h *History) Run() verify.Run {
	return verify.Run{Acked: h.Acked, Unknown: h.Unknown, LostCreates: h.LostCreates}
}
