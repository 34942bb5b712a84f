package limit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Times of net/http that no deployment needs to change.
const (
	headTimeout = 5 * time.Second
	idleTimeout = 120 * time.Second
)

// Serve serves HTTP on listener until ctx ends, then drains requests in flight. It owns the
// listener. It returns nil after a clean shutdown, and an error if serving failed or requests
// were aborted.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, options *Options) error {
	bounded := Listen(listener, options)
	o := &bounded.options
	bounded.heads = o.Anonymous > 0
	// The end of ctx stops accepting, but requests in flight must complete.
	base := context.WithoutCancel(ctx)
	server := &http.Server{
		Handler:                      bounded.closing(handler),
		ReadHeaderTimeout:            headTimeout,
		ReadTimeout:                  o.Body,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               o.Head,
		ConnState:                    bounded.ConnState,
		ConnContext:                  bounded.ConnContext,
		BaseContext:                  func(net.Listener) context.Context { return base },
		ErrorLog:                     slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn),
		DisableGeneralOptionsHandler: true,
	}
	stopped := make(chan error, 1)
	serving, cancel := context.WithCancel(ctx)
	go func() {
		<-serving.Done()
		if o.Stopping != nil {
			o.Stopping()
		}
		within, cancel := context.WithTimeout(base, o.Drain)
		defer cancel()
		err := server.Shutdown(within)
		if err != nil {
			busy := bounded.busy()
			if err = errors.Join(err, server.Close()); busy > 0 {
				err = fmt.Errorf("requests were aborted after %v, of connections: %d: %w", o.Drain, busy, err)
			} else {
				o.Logger.DebugContext(base, "connections closed that had not sent a request", slog.Any("error", err))
				err = nil
			}
		}
		stopped <- err
	}()
	err := server.Serve(bounded)
	cancel()
	if stopErr := <-stopped; errors.Is(err, http.ErrServerClosed) {
		return stopErr
	}
	return err
}
