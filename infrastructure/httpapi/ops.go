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

	"feedbox/infrastructure/httpapi/hostguard"
	"feedbox/infrastructure/httpapi/limit"
)

// OpsOptions configures an Ops server. The zero value has the defaults.
type OpsOptions struct {
	// Ready returns nil if the process can do its work. It is called for each probe and has
	// one second. Default always ready.
	Ready func(ctx context.Context) error
	// Dependencies returns the state of the dependencies by name, for the body of /readyz.
	// It does not affect the status, because neither other routing nor a restart would cure
	// an outage of a dependency. Default none.
	Dependencies func() map[string]Dependency
	// Metrics serves /metrics; default 404.
	Metrics http.Handler
	// AllowedHosts are host names to answer to on a loopback address, as in Options.
	AllowedHosts []string
	// Logger receives the errors of net/http; default none.
	Logger *slog.Logger
	// DrainTimeout bounds the shutdown; default 2 s.
	DrainTimeout time.Duration
}

// maxOpsConnections is well above the number of probes and scrapers.
const maxOpsConnections = 100

// Ops serves probes and metrics on a separate listener, so that clients of the API cannot
// reach them:
//
//	/livez    200 while the process runs
//	/readyz   200, or 503 with the reason; the body has the state of the dependencies
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
	o.options.Logger = cmp.Or(o.options.Logger, slog.New(slog.DiscardHandler))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { writeProbe(w, nil, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { writeProbe(w, o.ready(r.Context()), o.dependencies()) })
	if o.options.Metrics != nil {
		mux.Handle("GET /metrics", o.options.Metrics)
	}
	o.handler = mux
	return o
}

// Drain makes /readyz answer 503. Call it when the shutdown starts, so that no new work is
// routed here.
func (o *Ops) Drain() { o.draining.Store(true) }

// Handler returns the routes without a listener.
func (o *Ops) Handler() http.Handler { return o.handler }

// Run serves on listener until ctx ends. It owns the listener and returns nil after a clean
// shutdown. Stop it last, because probes should answer while the process drains.
func (o *Ops) Run(ctx context.Context, listener net.Listener) error {
	guarded := hostguard.Handler(o.handler, listener, o.options.AllowedHosts...)
	if err := limit.Serve(ctx, listener, guarded, &limit.Options{Connections: maxOpsConnections, Anonymous: -1, Drain: o.options.DrainTimeout, Logger: o.options.Logger}); err != nil {
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

// Dependency is the state of a service that the process needs.
type Dependency struct {
	Status   string    `json:"status"`            // ok, failing, or unknown: not used yet, or not since a failure
	Answered time.Time `json:"answered,omitzero"` // last answer
	Failing  time.Time `json:"failing,omitzero"`  // start of the outage
	Error    string    `json:"error,omitempty"`   // last failure
}

func (o *Ops) dependencies() map[string]Dependency {
	if o.options.Dependencies == nil {
		return nil
	}
	return o.options.Dependencies()
}

func writeProbe(w http.ResponseWriter, err error, dependencies map[string]Dependency) {
	answer := struct {
		Status       string                `json:"status"`
		Reason       string                `json:"reason,omitempty"`
		Dependencies map[string]Dependency `json:"dependencies,omitempty"`
	}{Status: "ok", Dependencies: dependencies}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		answer.Status, answer.Reason = "unavailable", err.Error()
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(answer) // fails only if the prober has disconnected
}
