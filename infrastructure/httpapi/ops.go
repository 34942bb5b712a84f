package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// OpsOptions adjust an Ops server. The zero value means the defaults.
type OpsOptions struct {
	// Ready returns nil when the process can do its work. It is called for
	// each probe and must return within a second. Default always ready. See
	// [ReadyOnce].
	Ready func(ctx context.Context) error
	// Metrics serves /metrics; default 404.
	Metrics http.Handler
	// Logger receives what net/http has to say; default none.
	Logger *slog.Logger
	// DrainTimeout bounds the stop; default 2 s.
	DrainTimeout time.Duration
}

// Ops serves probes and metrics on a listener of its own, so that they are
// never reachable from where clients are:
//
//	/livez    200 while the process runs
//	/readyz   200, or 503 with the reason
//	/metrics  Prometheus text format
//
// It is safe for concurrent use.
type Ops struct {
	options  OpsOptions
	draining atomic.Bool
	handler  http.Handler
}

// NewOps returns an ops server.
func NewOps(options *OpsOptions) *Ops {
	o := &Ops{}
	if options != nil {
		o.options = *options
	}
	o.options.DrainTimeout = cmp.Or(o.options.DrainTimeout, 2*time.Second)
	if o.options.Logger == nil {
		o.options.Logger = slog.New(slog.DiscardHandler)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { writeProbe(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { writeProbe(w, o.ready(r.Context())) })
	if o.options.Metrics != nil {
		mux.Handle("GET /metrics", o.options.Metrics)
	}
	o.handler = mux
	return o
}

// Drain makes /readyz answer 503 from now on. Call it when the stop begins,
// so that no new work is routed here.
func (o *Ops) Drain() { o.draining.Store(true) }

// Handler returns the routes without a listener.
func (o *Ops) Handler() http.Handler { return o.handler }

// Run serves on listener until ctx ends. It owns the listener and returns nil
// after a clean stop. Stop it last: probes should answer while draining.
func (o *Ops) Run(ctx context.Context, listener net.Listener) error {
	if err := serve(ctx, listener, o.handler, o.options.Logger, time.Minute, o.options.DrainTimeout); err != nil {
		return fmt.Errorf("ops server: %w", err)
	}
	return nil
}

func (o *Ops) ready(ctx context.Context) error {
	if o.draining.Load() {
		return fmt.Errorf("stopping")
	}
	if o.options.Ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return o.options.Ready(ctx)
}

func writeProbe(w http.ResponseWriter, err error) {
	answer := struct {
		Status string `json:"status"`
		Reason string `json:"reason,omitempty"`
	}{Status: "ok"}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		answer.Status, answer.Reason = "unavailable", err.Error()
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(answer) // the prober has gone away
}

// ReadyOnce returns a readiness test that asks check until it succeeds once
// and is satisfied from then on. Throttling or a short outage of the store
// must not take the API out of rotation: clients are better served by its own
// 503 with Retry-After.
func ReadyOnce(check func(ctx context.Context) error) func(ctx context.Context) error {
	var passed atomic.Bool
	return func(ctx context.Context) error {
		if passed.Load() {
			return nil
		}
		if err := check(ctx); err != nil {
			return err
		}
		passed.Store(true)
		return nil
	}
}
