package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/spf13/pflag"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/lab/playground"
	"feedbox/infrastructure/lab/playground/playpage"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/page"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
	"feedbox/infrastructure/wiring"
)

// playing has the flags of the playground.
type playing struct {
	on     bool
	script bool
	faults string
	relays int
	rate   float64
	seed   uint64
	pause  time.Duration
	tamper func(*playground.Options) // for tests; may be nil
}

func (p *playing) register(flags *pflag.FlagSet) {
	flags.BoolVar(&p.on, "play", false, "run the playground: load, relay processes, faults on demand, a live verdict")
	flags.BoolVar(&p.script, "script", false, "with --play: inject the faults in sequence without a browser")
	flags.StringVar(&p.faults, "faults", "", "with --script: faults and durations, such as kill,freeze=8s,clock (default all)")
	flags.DurationVar(&p.pause, "pause", 4*time.Second, "with --script: pause before each fault and after the last")
	flags.IntVar(&p.relays, "relays", 3, "with --play: number of relays, 1 to 8")
	flags.Float64Var(&p.rate, "rate", 50, "with --play: changes per second, 1 to 200")
	flags.Uint64Var(&p.seed, "seed", 0, "with --play: seed of all choices, printed at start (default random)")
}

// check returns an error for the first invalid flag.
func (p *playing) check(set func(flag string) bool) error {
	if !p.on {
		for _, flag := range []string{"script", "faults", "pause", "relays", "rate", "seed"} {
			if set(flag) {
				return fmt.Errorf("--%s needs --play: give both", flag)
			}
		}
		return nil
	}
	for _, flag := range []string{"data-dir", "record"} {
		if set(flag) {
			return fmt.Errorf("--play and --%s exclude each other: the playground starts empty and keeps nothing", flag)
		}
	}
	if !p.script && (set("faults") || set("pause")) {
		return errors.New("--faults and --pause need --script: give it, too")
	}
	if p.relays < 1 || p.relays > 8 {
		return fmt.Errorf("--relays %d: give a number from 1 to 8", p.relays)
	}
	if !(p.rate >= 1 && p.rate <= 200) { // so that NaN is refused
		return fmt.Errorf("--rate %v: give a number from 1 to 200", p.rate)
	}
	if p.pause < 0 || p.pause > time.Hour {
		return fmt.Errorf("--pause %s: give a duration up to 1h", p.pause)
	}
	if _, err := playground.ParsePlan(p.faults); err != nil {
		return fmt.Errorf("--faults: %w", err)
	}
	return nil
}

// run runs the playground until ctx ends, or until the script ends. show serves the page
// with a section until ctx ends.
func (p *playing) run(ctx context.Context, emulators *emulators, e *endpoints, out io.Writer, style console.Style, show func(context.Context, ...page.Section) error) (err error) {
	engine, err := p.start(ctx, emulators, e, out, style)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	if p.script {
		return p.playScript(ctx, engine, out)
	}
	return show(ctx, playpage.Section(engine, "play"))
}

// start starts the playground on the running emulators and API.
func (p *playing) start(ctx context.Context, emulators *emulators, e *endpoints, out io.Writer, style console.Style) (*playground.Engine, error) {
	cfg, err := config.LoadRelay(e.environ())
	if err != nil {
		return nil, err
	}
	operators, err := wiring.Operator(cfg, wiring.Params{CosmosTransport: emulators.cosmos.HTTPClient()})
	if err != nil {
		return nil, err
	}
	for range p.relays {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0") // the page must know the port in advance
		if err != nil {
			return nil, err
		}
		e.relayOps = append(e.relayOps, l.Addr().String())
		_ = l.Close() // the relay listens there
	}
	options := &playground.Options{
		Cosmos: emulators.cosmos, Bus: emulators.bus, API: e.API,
		Names: playground.Names{Database: e.Database, Container: e.Container, Parked: e.Parked, Topic: e.Topic, Subscription: e.Subscription},
		Relay: e.relayProcess, Relays: p.relays, Rate: p.rate, Seed: p.seed,
		RetryParked: retryParked(operators), Owned: owned(operators),
		Logged: func(entry playground.Entry) {
			text := console.Clean(entry.Text)
			if entry.Bad {
				text = style.Bad(text)
			}
			_, _ = fmt.Fprintf(out, "%s  %s\n", style.Faint(entry.At.Format(time.TimeOnly)), text)
		},
	}
	if p.tamper != nil {
		p.tamper(options)
	}
	return playground.Start(ctx, options)
}

// retryParked requests that the parked events of a key are sent, as feedbox parked retry
// does. It returns false if the key is not parked.
func retryParked(o *operator.Operator) func(ctx context.Context, key string) (bool, error) {
	return func(ctx context.Context, key string) (bool, error) {
		_, err := o.Parked.SetIntent(ctx, key, relay.Intent{Verb: relay.VerbRetry, By: "playground", Note: "the poison fault has ended", At: time.Now()})
		if fault.Is(err, fault.NotFound) {
			return false, nil
		}
		return err == nil, err
	}
}

// owned returns the number of ranges of each relay.
func owned(o *operator.Operator) func(ctx context.Context) (map[string]int, error) {
	return func(ctx context.Context) (map[string]int, error) {
		leases, err := o.Leases.Leases(ctx)
		if err != nil {
			return nil, err
		}
		counts := map[string]int{}
		for i := range leases {
			counts[leases[i].Owner]++
		}
		return counts, nil
	}
}
