package busemu

import (
	"encoding/json"
	"errors"
	"net/http"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// Counters returns the counters of an entity by its path, such as "orders" or
// "orders/Subscriptions/all". A topic's include its subscriptions'.
func (s *Server) Counters(path string) (Counters, error) {
	return s.broker.Counters(path)
}

// counters answers GET /$counters/{path}. It is an addition of the emulator for tests in other
// processes; the service has no such route.
func (a *adminServer) counters(w http.ResponseWriter, r *http.Request) {
	c, err := a.srv.Counters(r.PathValue("path"))
	if errors.Is(err, broker.NotFound) {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(c) // the client has gone away
}
