package faults

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.uber.org/fx"

	"feedbox/infrastructure/emulator/pipenet"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/wiring"
	"feedbox/tests/sim/world"
)

// The relays of a world expose neither their probes nor the answers of the store. A test that needs
// these runs its own relays in a world without any.

// relayProcess is a relay that runs or has ended.
type relayProcess struct {
	name   string
	s      *scenario
	cancel context.CancelFunc
	done   chan struct{}
	ops    *pipenet.Network

	mu    sync.Mutex // guards the fields below
	dead  bool
	conns []net.Conn // to the broker
	lines []line
}

// startRelay starts a relay. The name must be unique. more is added to its environment; seen, if set,
// receives all answers of the store.
func (s *scenario) startRelay(name string, seen func(*http.Request, int), more ...string) *relayProcess {
	s.Helper()
	cfg, err := config.LoadRelay(append([]string{
		"FEEDBOX_INSTANCE=" + name,
		"FEEDBOX_COSMOS_ENDPOINT=" + s.address(), "FEEDBOX_PLAINTEXT_HOSTS=*", "FEEDBOX_COSMOS_KEY=" + s.Cosmos().Key(), "FEEDBOX_COSMOS_DATABASE=" + world.Database,
		"FEEDBOX_COSMOS_CONTAINER=" + world.Data, "FEEDBOX_COSMOS_LEASES=" + world.Leases, "FEEDBOX_COSMOS_PARKED=" + world.Parked,
		"FEEDBOX_SERVICEBUS_TOPIC=" + world.Topic, "FEEDBOX_SERVICEBUS_CONNECTION_STRING=" + s.Bus().ConnectionString(),
		"FEEDBOX_LEASE_EXPIRY=3s", "FEEDBOX_LEASE_RENEW=1s", "FEEDBOX_LEASE_ACQUIRE=1s", "FEEDBOX_RELAY_POLL_MIN=200ms", "FEEDBOX_RELAY_POLL_MAX=1s",
		"FEEDBOX_DRAIN_TIMEOUT=5s",
	}, more...))
	if err != nil {
		s.Fatal(err)
	}
	r := &relayProcess{name: name, s: s, done: make(chan struct{}), ops: pipenet.New()}
	listener, err := r.ops.Listen("ops:80")
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	r.cancel = cancel
	network := s.NewClient()
	s.Trace().Add(name, "starts")
	go func() {
		defer close(r.done)
		defer network.Close()
		err := wiring.Run(ctx, fx.New(wiring.Relay(cfg, wiring.Params{
			Sockets: wiring.Sockets{Ops: listener}, Log: slog.New(&relayLog{relay: r}),
			CosmosTransport: &wire{client: network, cut: r.isDead, seen: seen, spoil: s.spoil}, ServiceBusDial: r.dial,
		})), nil)
		s.Trace().Add(name, "ends: %v", err)
	}()
	s.Cleanup(func() {
		r.cancel()
		<-r.done
	})
	return r
}

// stop ends the relay as SIGTERM does.
func (r *relayProcess) stop() {
	r.s.Trace().Add(r.name, "STOP")
	r.cancel()
}

// kill cuts all connections at once and cancels the relay.
func (r *relayProcess) kill() {
	r.s.Trace().Add(r.name, "KILL")
	r.mu.Lock()
	r.dead = true
	conns := r.conns
	r.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
	r.cancel()
}

func (r *relayProcess) isDead() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dead
}

func (r *relayProcess) dial(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
	if r.isDead() {
		return nil, errCut
	}
	c, err := r.s.Bus().Dial(ctx)
	if err == nil {
		r.mu.Lock()
		r.conns = append(r.conns, c)
		r.mu.Unlock()
	}
	return c, err
}

// ask sends a request to the relay's operations endpoint.
func (r *relayProcess) ask(path string) (status int, body string) {
	transport := &http.Transport{DialContext: r.ops.DialContext, DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	request, err := http.NewRequestWithContext(r.s.Context(), http.MethodGet, "http://ops:80"+path, nil)
	if err != nil {
		r.s.Fatal(err)
	}
	reply, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = reply.Body.Close() }()
	raw, err := io.ReadAll(reply.Body)
	if err != nil {
		return 0, err.Error()
	}
	return reply.StatusCode, string(raw)
}

// metric returns the sum of a metric over its attributes.
func (r *relayProcess) metric(name string) float64 {
	r.s.Helper()
	status, text := r.ask("/metrics")
	if status != http.StatusOK {
		r.s.Errorf("/metrics answers %d: %s", status, text)
	}
	sum := 0.0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, name) && !strings.HasPrefix(line, "#") {
			fields := strings.Fields(line)
			n, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			if err != nil {
				r.s.Errorf("metric %q: %v", line, err)
			}
			sum += n
		}
	}
	return sum
}

// line is a stored log record.
type line struct {
	message string
	attrs   map[string]slog.Value
}

// logged returns the log records with a message.
func (r *relayProcess) logged(message string) []line {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.lines), func(l line) bool { return l.message != message })
}

// relayLog stores the log of a relay and adds it to the trace.
type relayLog struct{ relay *relayProcess }

func (h *relayLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (h *relayLog) Handle(_ context.Context, record slog.Record) error {
	r := h.relay
	if record.Message == "relay.lag" {
		return nil
	}
	kept := line{record.Message, map[string]slog.Value{}}
	var text strings.Builder
	record.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&text, " %s=%.300v", a.Key, a.Value)
		kept.attrs[a.Key] = a.Value
		if a.Value.Kind() == slog.KindString { // may alias a page, whose memory is reused
			kept.attrs[a.Key] = slog.StringValue(strings.Clone(a.Value.String()))
		}
		return true
	})
	r.s.Trace().Add(r.name, "%s %s%s", record.Level, record.Message, text.String())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, kept)
	return nil
}

func (h *relayLog) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h *relayLog) WithGroup(string) slog.Handler      { return h }

// names of relays, in order.
func names(relays []*relayProcess) []string {
	var list []string
	for _, r := range relays {
		list = append(list, r.name)
	}
	slices.Sort(list)
	return list
}
