package workload

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A load that is cancelled waits for the reply of a request in flight. Otherwise the store
// could change after Run, and verify would report a false breach.
func TestRequestInFlightIsFinished(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cancel()
		w.Header().Set("Location", "/api/contacts/c")
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()
	l := &Load{Base: server.URL, Client: server.Client(), Contacts: 1, Changes: 10, Writers: 1}
	if err := l.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if acked, _, done := l.History(); acked["c"] != 1 || done != 1 || l.LostCreates() != 0 {
		t.Errorf("acknowledged %v, %d in total, %d creates lost; want the request in flight", acked, done, l.LostCreates())
	}
}
