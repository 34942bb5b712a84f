package main

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"go.uber.org/fx"
	"golang.org/x/sync/errgroup"

	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
	"feedbox/infrastructure/process/telemetry"
	"feedbox/infrastructure/wiring"
)

// Defaults that differ from production, because a demo needs quick reactions: the first
// event after a quiet time is sent at once, and a restarted relay gets its leases soon. The
// environment overrides them.
const (
	pollMax     = 250 * time.Millisecond
	leaseExpiry = 2 * time.Second
	tokenKey    = "continuation tokens outlive this" // 32 bytes; constant so that tokens stay valid after a restart
)

// flushTimeout bounds the last export of metrics and traces.
const flushTimeout = 5 * time.Second

// service has the contacts API and the relay, wired as in production but with the emulators,
// and a consumer of their events. Relay and consumer are nil if the playground has its own.
type service struct {
	relay, api *fx.App
	subscriber *demoSubscriber
	telemetry  *telemetry.Telemetry // of API and relay, because they share one ops endpoint
}

// newService configures all parts. FEEDBOX_ variables of the environment apply unless the
// demo sets them itself.
func newService(ctx context.Context, opts *options, environ []string, l *listeners, emulators *emulators, e endpoints, screen *printer, log *slog.Logger) (*service, error) {
	environ = slices.Concat([]string{
		"FEEDBOX_RELAY_POLL_MAX=" + pollMax.String(),
		"FEEDBOX_LEASE_EXPIRY=" + leaseExpiry.String(),
		"FEEDBOX_PARKED_POLL=1s", // someone waits for the effect of a retry
		"FEEDBOX_API_TOKEN_KEYS=" + base64.StdEncoding.EncodeToString([]byte(tokenKey)),
		"FEEDBOX_API_DRAIN_DELAY=0s", // there is no load balancer to wait for
	}, environ, []string{
		"FEEDBOX_API_LISTEN=" + l.api.Addr().String(), // checked: a public address needs FEEDBOX_AUTH
	}, e.environ())
	if opts.play.on {
		environ = append(environ, "FEEDBOX_EVENT_TTL="+playgroundEventTTL.String())
	}
	apiConfig, err := config.LoadAPI(environ)
	if err != nil {
		return nil, err
	}
	shared, err := telemetry.Start(ctx, "feedbox-dev", &telemetry.Options{Version: console.Version(), LookupEnv: func(name string) (string, bool) { return config.Lookup(environ, name) }})
	if err != nil {
		return nil, err
	}
	around := wiring.Params{Log: log, Version: console.Version(), CosmosTransport: emulators.cosmos.HTTPClient(), Telemetry: shared}
	inAPI := around
	if e.Page != "" {
		inAPI.Home = http.RedirectHandler(e.Page+"/", http.StatusSeeOther)
	}
	inAPI.Sockets = wiring.Sockets{API: l.api, Ops: l.ops}
	s := &service{api: fx.New(wiring.API(apiConfig, inAPI)), telemetry: shared}
	if opts.play.on {
		return s, nil // the playground has its own relays and consumer
	}
	relayConfig, err := config.LoadRelay(environ)
	if err != nil {
		return nil, err
	}
	s.relay = fx.New(wiring.Relay(relayConfig, around))
	s.subscriber, err = e.broker.subscriber(ctx, &e, opts.record, screen, log, shared)
	return s, err
}

// run starts the parts in order, runs until, and stops the parts in reverse order. It ends
// early if a part ends.
func (s *service) run(ctx context.Context, until func(ctx context.Context) error) (err error) {
	defer func() {
		flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		err = errors.Join(err, s.telemetry.Shutdown(flush))
	}()
	var starts []func(ctx context.Context, started func()) error
	if s.relay != nil {
		starts = append(starts, s.subscriber.run, func(ctx context.Context, started func()) error { return wiring.Run(ctx, s.relay, started) })
	}
	starts = append(starts, func(ctx context.Context, started func()) error { return wiring.Run(ctx, s.api, started) })
	return runAll(ctx, starts, until)
}

// runAll runs the first part and, inside it, the rest. So a part ends after the parts that
// were started later.
func runAll(ctx context.Context, parts []func(ctx context.Context, started func()) error, until func(ctx context.Context) error) error {
	if len(parts) == 0 {
		return until(ctx)
	}
	group, inside := errgroup.WithContext(ctx)
	outer, stop := context.WithCancel(context.WithoutCancel(ctx))
	started := make(chan struct{})
	group.Go(func() error {
		return parts[0](outer, func() { close(started) })
	})
	group.Go(func() error {
		defer stop()
		select {
		case <-started:
			return runAll(inside, parts[1:], until)
		case <-inside.Done():
			return nil
		}
	})
	return group.Wait()
}
