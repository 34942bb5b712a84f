package page

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// drainTimeout bounds how long a shutdown waits for open requests.
const drainTimeout = 5 * time.Second

// Run serves the page on listener until ctx ends, and closes the page. It owns the
// listener.
func (p *Page) Run(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: p, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: viewTimeout + 15*time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog: slog.NewLogLogger(p.options.Log.Handler(), slog.LevelWarn),
	}
	stopped := make(chan error, 1)
	serving, cancel := context.WithCancel(ctx)
	go func() {
		<-serving.Done()
		p.Close() // first, because Shutdown would wait for the streams
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		stopped <- errors.Join(server.Shutdown(within), server.Close())
	}()
	err := server.Serve(listener)
	cancel()
	if stopErr := <-stopped; errors.Is(err, http.ErrServerClosed) {
		return stopErr
	}
	return err
}
