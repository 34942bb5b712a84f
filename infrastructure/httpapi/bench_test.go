package httpapi_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/process/telemetry"
)

// nowhere discards log lines after they are formatted.
type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkUpdate measures the HTTP layer: the store is in memory and there is no
// connection. Logs, metrics and spans are on, as in production.
func BenchmarkUpdate(b *testing.B) {
	memory := newMemory()
	m := mediator.New()
	if err := errors.Join(
		contacts.RegisterCommands(m, contacts.CommandPorts{Work: memory, IDs: uuid.New, Now: clock}),
		contacts.RegisterQueries(m, contacts.QueryPorts{Contacts: memoryReader{memory}}),
	); err != nil {
		b.Fatal(err)
	}
	tel, err := telemetry.Start(b.Context(), "bench", nil)
	if err != nil {
		b.Fatal(err)
	}
	server, err := newServer(m, &httpapi.Options{Logger: slog.New(slog.NewJSONHandler(nowhere{}, nil)), Meters: tel.Meters, Tracers: tel.Tracers})
	if err != nil {
		b.Fatal(err)
	}
	handler := server.Handler()
	created := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/api/contacts", strings.NewReader(jane))
	r.Header.Set("Content-Type", "application/json")
	handler.ServeHTTP(created, r)
	path := created.Header().Get("Location") + "/update-name"
	bodies := []string{`{"firstName":"Jane","lastName":"Doe"}`, `{"firstName":"Janet","lastName":"Roe"}`}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(bodies[i%2]))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusNoContent {
			b.Fatal(w.Code, w.Body)
		}
	}
}
