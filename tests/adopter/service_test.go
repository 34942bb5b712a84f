package main

import (
	"context"
	"feedbox/infrastructure/emulator/cosmosemu"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"example.com/orders/open"
)

// An order passes REST, store, relay, topic and consumer in one process.
func TestAnOrderFromRequestToTotal(t *testing.T) {
	w := newWorld(t)
	ctx, stop := context.WithCancel(t.Context())
	var parts sync.WaitGroup
	for _, name := range []string{"serve", "relay", "consume"} {
		parts.Go(func() {
			part := func() error { return runOn(ctx, name, w.keeper, w.carrier) }
			if w.azure {
				part = func() error { return run(ctx, []string{name}) }
			}
			if err := part(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	w.up()
	call := func(want int, method, path, body string, headers ...string) answer {
		t.Helper()
		a, err := w.call(t.Context(), method, path, body, headers...)
		if err != nil || a.status != want {
			t.Fatalf("%s %s: status %d, %v; want %d", method, path, a.status, err, want)
		}
		return a
	}
	placed := call(http.StatusCreated, http.MethodPost, "", `{"customer":"Contoso"}`, "Idempotency-Key", "k1")
	again := call(http.StatusOK, http.MethodPost, "", `{"customer":"Contoso"}`, "Idempotency-Key", "k1")
	if again.view.ID != placed.view.ID || placed.view.Version != 1 {
		t.Errorf("placed %+v, again %+v", placed, again)
	}
	one := "/" + placed.view.ID
	added := call(http.StatusNoContent, http.MethodPost, one+"/add", `{"sku":"pen","pieces":15,"price":100}`, "If-Match", placed.etag)
	call(http.StatusPreconditionFailed, http.MethodPost, one+"/add", `{"sku":"pen","pieces":1,"price":100}`, "If-Match", placed.etag)
	call(http.StatusUnprocessableEntity, http.MethodPost, one+"/add", `{"sku":"","pieces":0,"price":-1}`)
	call(http.StatusConflict, http.MethodPost, one+"/add", `{"sku":"yacht","pieces":2,"price":999999}`)
	read := call(http.StatusOK, http.MethodGet, one, "")
	if read.view.Version != 2 || read.view.Total != 1500 || len(read.view.Lines) != 2 || read.etag != added.etag {
		t.Errorf("read %+v", read)
	}

	w.eventually("the consumer has counted three events", func() bool { return w.counted(placed.view.ID).Events == 3 })
	if w.store != nil { // the consumer must not treat an unreadable total as a missing one
		var refused atomic.Bool
		w.store.Control(cosmosemu.OpReadItem, func(c *cosmosemu.Call) *cosmosemu.Fault {
			if c.Container != "totals" || c.ID != open.Name+"-total" || refused.Swap(true) {
				return nil
			}
			return &cosmosemu.Fault{Status: http.StatusForbidden, Message: "injected by the test"}
		})
		defer func() {
			if !refused.Load() {
				t.Error("the consumer was not refused")
			}
		}()
	}
	call(http.StatusNoContent, http.MethodPost, one+"/ship", "")
	call(http.StatusConflict, http.MethodPost, one+"/cancel", "")
	call(http.StatusNotFound, http.MethodGet, "/5cb6a1a6-6a19-4ac5-a1f9-70b0f4bfe9c7", "")

	w.eventually("the consumer has counted the four events", func() bool { return w.counted(placed.view.ID).Events == 4 })
	if total := w.counted(placed.view.ID); total.Open || total.Pieces != 15 {
		t.Errorf("the consumer has stored %+v", total)
	}
	stop()
	parts.Wait()
}
