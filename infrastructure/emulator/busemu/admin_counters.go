package busemu

import (
	"encoding/json"
	"errors"
	"net/http"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// Counters count what happened to an entity since the emulator started. They are
// not stored.
type Counters struct {
	Accepted     int64 // messages acknowledged, duplicates included
	Duplicates   int64 // acknowledged and dropped
	Refused      int64 // messages of refused batches
	Enqueued     int64 // messages that became visible, in all subscriptions of a topic
	Delivered    int64
	Completed    int64 // receive-and-delete included
	Abandoned    int64
	Released     int64
	Deferred     int64
	DeadLettered int64
	Expired      int64
	LocksLost    int64
	SessionsHeld int64 // sessions accepted so far
}

// Counters returns the counters of an entity by its path, such as "orders" or
// "orders/Subscriptions/all". A topic's include its subscriptions'.
func (s *Server) Counters(path string) (Counters, error) {
	c, err := s.broker.Counters(path)
	return Counters(c), err
}

// counters answers GET /$counters/{path}: the emulator's own addition to the admin
// listener, for tests in other processes. The service has no such route.
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
