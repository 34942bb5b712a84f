package main

import (
	"context"
	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/lab/feedboxtest"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"example.com/orders/api"
	"example.com/orders/open"
	"example.com/orders/store"
)

// An order passes API, store, relay, topic and consumer.
func TestAnOrderIsCounted(t *testing.T) {
	s := feedboxtest.Start(t, &feedboxtest.Options{Database: database, Topic: topic, Containers: []string{"totals"}, Subscriptions: []string{open.Name}})
	orders, err := store.Open(s.Container("data"))
	must(t, err)
	server, err := httpapi.New([]httpapi.Resource{api.Resource(orders)}, nil)
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	consumed := make(chan error, 1)
	go func() { consumed <- consume(ctx, s.Cosmos, s.ServiceBus) }()

	one := post(t, server, "/api/orders", `{"customer":"Contoso"}`).Header.Get("Location")
	post(t, server, one+"/add", `{"sku":"pen","pieces":15,"price":100}`)

	var actions []string
	for _, e := range s.Received(3) {
		actions = append(actions, e.Action)
	}
	if want := []string{"OrderPlacedEvent", "OrderLineAddedEvent", "OrderLineAddedEvent"}; !slices.Equal(actions, want) {
		t.Errorf("sent %q, want %q", actions, want)
	}
	s.WaitFor("the consumer has counted 15 pieces", func() bool {
		total, err := inCosmos{s.Cosmos}.total(t.Context(), one[strings.LastIndex(one, "/")+1:])
		return err == nil && total.Pieces == 15 && total.Events == 3
	})
	stop()
	must(t, <-consumed)
}

// post sends a request, which must succeed.
func post(t *testing.T, server *httpapi.Server, path, body string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	server.Handler().ServeHTTP(w, r)
	answer := w.Result()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	if answer.StatusCode >= http.StatusBadRequest {
		t.Fatalf("POST %s: %d %s", path, answer.StatusCode, text)
	}
	return answer
}
