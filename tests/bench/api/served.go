package api

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"
)

// serveBare serves the bare loop's update over net/http: no checks, no log, no metrics.
func (w *world) serveBare(ctx context.Context) (address string, err error) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/contacts/{id}/update-name", func(reply http.ResponseWriter, r *http.Request) {
		var name bareName
		err := json.NewDecoder(r.Body).Decode(&name)
		if err == nil {
			err = bareUpdate(r.Context(), w.container, r.PathValue("id"), name)
		}
		if err != nil {
			http.Error(reply, err.Error(), http.StatusInternalServerError)
			return
		}
		reply.WriteHeader(http.StatusNoContent)
	})
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	w.closers = append(w.closers, func() error {
		err := server.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	})
	return listener.Addr().String(), nil
}
