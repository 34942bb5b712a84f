package workload

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
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

// Each writer has a contact, however the contacts to create and those that exist are divided.
func TestEachWriterHasAContact(t *testing.T) {
	var created atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Count(r.URL.Path, "/") > 2 { // a change
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Location", fmt.Sprint("/api/contacts/", created.Add(1)))
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()
	for contacts := range 5 {
		for existing := range 5 {
			for writers := 1; writers <= contacts+existing; writers++ {
				created.Store(0)
				l := &Load{Base: server.URL, Client: server.Client(), Contacts: contacts, Changes: 12, Writers: writers}
				for n := range existing {
					l.Existing = append(l.Existing, fmt.Sprint("old", n))
				}
				if err := l.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, _, done := l.History(); done != 12 || created.Load() != int64(contacts) {
					t.Errorf("%d contacts, %d exist, %d writers: %d changes, %d contacts created", contacts, existing, writers, done, created.Load())
				}
			}
		}
	}
}

// A load that cannot run is refused before its first request.
func TestLoadRefusesInvalidFields(t *testing.T) {
	for want, change := range map[string]func(*Load){
		"3 writers for 2 contacts":   func(l *Load) { l.Writers = 3 },
		"0 writers":                  func(l *Load) { l.Writers = 0 },
		"-1 contacts":                func(l *Load) { l.Contacts, l.Existing = -1, []string{"a", "b"} },
		"0 changes":                  func(l *Load) { l.Changes = 0 },
		"the Client is missing":      func(l *Load) { l.Client = nil },
		"id a is twice in Existing":  func(l *Load) { l.Existing = []string{"a", "b", "a"} },
		"an id of Existing is empty": func(l *Load) { l.Existing = []string{""} },
		"hot 101":                    func(l *Load) { l.Hot = 101 },
	} {
		l := &Load{Base: "http://127.0.0.1:0", Client: &http.Client{}, Contacts: 2, Changes: 4, Writers: 1}
		change(l)
		if err := l.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
