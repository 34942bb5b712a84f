package world

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.uber.org/fx"

	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/infrastructure/wiring"
)

// restartDelay is the time until an orchestrator restarts a process that exited.
const restartDelay = 2 * time.Second

// process is an API, a relay, a consumer or a shop, with its running incarnation if any.
type process struct {
	w          *World
	name, kind string

	mu       sync.Mutex // guards the fields below
	number   int        // of incarnations so far
	nic      *nic       // nil while it does not run
	instance string
	cancel   context.CancelFunc
}

// start starts a new incarnation unless one runs.
func (p *process) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nic != nil {
		return
	}
	p.number++
	n := newNIC(p.w.network)
	instance := fmt.Sprintf("%s.%d", p.name, p.number)
	ctx, cancel := context.WithCancel(p.w.ctx)
	p.nic, p.instance, p.cancel = n, instance, cancel
	p.w.trace.Add(instance, "starts")
	p.w.wg.Go(func() {
		err := p.main(ctx, n, instance)
		if n.alive() {
			p.w.trace.Add(instance, "ends: %v", err)
		}
		p.ended(n)
	})
}

// ended restarts the process unless it was crashed or stopped.
func (p *process) ended(n *nic) {
	n.kill()
	p.mu.Lock()
	mine := p.nic == n
	if mine {
		p.nic = nil
		p.cancel()
	}
	p.mu.Unlock()
	if !mine {
		return // crashed or stopped
	}
	timer := time.NewTimer(restartDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
		p.start()
	case <-p.w.ctx.Done():
	}
}

// crash cuts the network of the process and cancels it.
func (p *process) crash() bool {
	n, cancel := p.take()
	if n == nil {
		return false
	}
	n.kill()
	cancel()
	return true
}

// stop ends the process as SIGTERM does. It does not wait.
func (p *process) stop() bool {
	n, cancel := p.take()
	if n == nil {
		return false
	}
	cancel()
	return true
}

func (p *process) take() (*nic, context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, cancel := p.nic, p.cancel
	p.nic, p.cancel = nil, nil
	return n, cancel
}

func (p *process) current() (*nic, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nic, p.instance
}

// main runs the process until ctx ends or the process exits.
func (p *process) main(ctx context.Context, n *nic, instance string) error {
	log := slog.New(&processLog{w: p.w, who: instance, nic: n})
	switch p.kind {
	case "api":
		return p.w.runAPI(ctx, n, p.name, log)
	case "relay":
		if p.w.topology.OneRelay {
			return p.w.runRelay(ctx, n, p.w.outboxes, instance, log)
		}
		return p.w.runRelay(ctx, n, p.w.outboxes[:1], instance, log)
	case "shoprelay":
		return p.w.runRelay(ctx, n, []outbox{p.w.orders()}, instance, log)
	case "shop":
		return p.w.runShop(ctx, n, p.name)
	default:
		return p.w.runConsumer(ctx, n, log)
	}
}

// environ returns the environment of an API or a relay.
func (w *World) environ(o outbox, more ...string) []string {
	t := w.topology
	env := []string{
		"FEEDBOX_COSMOS_ENDPOINT=" + w.endpoint(), "FEEDBOX_PLAINTEXT_HOSTS=*",
		"FEEDBOX_COSMOS_KEY=" + w.Cosmos().Key(),
		"FEEDBOX_COSMOS_DATABASE=" + Database,
		"FEEDBOX_EVENT_TTL=" + t.EventTTL.String(), "FEEDBOX_DRAIN_TIMEOUT=5s", "FEEDBOX_API_RATE_LIMIT=0",
	}
	return slices.Concat(env, o.environ(), more, t.Environ)
}

// endpoint returns an address of the store that was never used before.
func (w *World) endpoint() string {
	return fmt.Sprintf("http://account-%d.documents.example:%d/", w.id, 10_000+w.ports.Add(1))
}

// transport returns the transport from a process to the store.
func (w *World) transport(n *nic) roundTripper {
	return roundTripper{nic: n, metadata: w.metadata, Transport: &http.Transport{MaxIdleConnsPerHost: 32, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return n.dial(ctx, cosmosAddr)
	}}}
}

func (w *World) runAPI(ctx context.Context, n *nic, name string, log *slog.Logger) error {
	cfg, err := config.LoadAPI(w.environ(w.outboxes[0]))
	if err != nil {
		return err
	}
	listener, err := n.listen(name + ":80")
	if err != nil {
		return err
	}
	transport := w.transport(n)
	defer transport.CloseIdleConnections()
	defer func() { _ = listener.Close() }()
	return run(ctx, wiring.API(cfg, wiring.Params{
		Sockets: wiring.Sockets{API: listener}, Log: log, CosmosTransport: &http.Client{Transport: transport},
	}))
}

// run runs a part of the service until ctx ends. It ignores the end of ctx while the part starts,
// because otherwise a crash during the start would be an orderly rollback.
//
// The stop has no time limit, so that the remains of a crashed process in memory end. With a limit,
// fx would skip hooks.
func run(ctx context.Context, part fx.Option) error {
	app := fx.New(part, fx.StopTimeout(time.Hour))
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var forget func() bool
	defer func() {
		if forget != nil {
			forget()
		}
	}()
	return wiring.Run(running, app, func() { forget = context.AfterFunc(ctx, cancel) })
}

func (w *World) runRelay(ctx context.Context, n *nic, outboxes []outbox, instance string, log *slog.Logger) error {
	t := w.topology
	var more []string
	for _, o := range outboxes[1:] {
		more = append(more, o.more())
	}
	cfg, err := config.LoadRelay(w.environ(outboxes[0], "FEEDBOX_RELAY_CONTAINERS="+strings.Join(more, ","),
		"FEEDBOX_INSTANCE="+instance, "FEEDBOX_SERVICEBUS_TOPIC="+Topic, "FEEDBOX_SERVICEBUS_CONNECTION_STRING="+w.Bus().ConnectionString(),
		fmt.Sprint("FEEDBOX_SERVICEBUS_PACK_KEYS=", t.PackKeys), "FEEDBOX_LEASE_EXPIRY="+t.LeaseExpiry.String(),
		"FEEDBOX_RELAY_POLL_MIN="+t.PollMin.String(), "FEEDBOX_RELAY_POLL_MAX="+t.PollMax.String(), fmt.Sprint("FEEDBOX_RELAY_MAX_ITEMS=", t.MaxItems),
	))
	if err != nil {
		return err
	}
	transport := w.transport(n)
	defer transport.CloseIdleConnections()
	recorded := fx.Decorate(func(all []relayport.Store) []relayport.Store {
		for i, o := range outboxes {
			all[i].Leases = w.steps[o.leases].Store(instance, func() (own, wall time.Time) { return time.Now(), time.Now() }, all[i].Leases)
		}
		return all
	})
	return run(ctx, fx.Options(wiring.Relay(cfg, wiring.Params{
		Log: log, CosmosTransport: &http.Client{Transport: transport}, ServiceBusDial: n.dialBus,
	}), recorded))
}

func (n *nic) dialBus(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
	return n.dial(ctx, busAddr)
}

// Processes lists the names of all processes, including those that do not run.
func (w *World) Processes() []string {
	var names []string
	for name := range w.parts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Kind lists the names of the processes of one kind: "api", "relay" or "consumer".
func (w *World) Kind(kind string) []string {
	return slices.DeleteFunc(w.Processes(), func(name string) bool { return !strings.HasPrefix(name, kind+"-") })
}
