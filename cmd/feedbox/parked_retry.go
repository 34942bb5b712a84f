package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

func (p *program) parkedRetryCommand() *cobra.Command {
	var format console.Format
	var by, note, reason string
	var wait time.Duration
	var all, fromStore, yes bool
	cmd := &cobra.Command{
		Use:   "retry KEY | --all | --reason REASON",
		Short: "Have a relay send the parked events of a key in their order",
		Long: `Have a relay send the parked events of a key in their order.

What is sent is what was parked. After the event was mended in the store, --from-store
sends each event as it stands there now.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 || (len(args) == 1) == (all || reason != "") || all && reason != "" {
				return usage(cmd, fmt.Errorf("%s takes one argument, the key, or --all, or --reason REASON, got %q", cmd.CommandPath(), args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.operate(cmd, false, long, func(ctx context.Context, _ *config.Relay, o *operator.Operator) error {
				intent := relay.Intent{Verb: relay.VerbRetry, By: p.who(by), Note: note, FromStore: fromStore}
				if len(args) == 0 {
					return p.wantAll(ctx, o, reason, intent, yes, wait, format)
				}
				if fromStore {
					if err := p.compare(ctx, o, args[0], format); err != nil {
						return err
					}
				}
				return p.want(ctx, o, args[0], intent, wait, format)
			})
		},
	}
	outputFlag(cmd, &format)
	intentFlags(cmd, &by, &note, &wait)
	yesFlag(cmd, &yes)
	cmd.Flags().BoolVar(&all, "all", false, "every parked key")
	cmd.Flags().StringVar(&reason, "reason", "", "every key that is parked for this reason, as feedbox parked ls shows it")
	cmd.Flags().BoolVar(&fromStore, "from-store", false, "send the events as they stand in the store now, not as they were parked")
	return cmd
}

func intentFlags(cmd *cobra.Command, by, note *string, wait *time.Duration) {
	cmd.Flags().StringVar(by, "by", "", "who wants it (default the login name)")
	cmd.Flags().StringVar(note, "note", "", "why, for the record")
	cmd.Flags().DurationVar(wait, "wait", 0, "wait this long for a relay to do it")
}

// want notes an intent on the gate of key, and waits for a relay if asked to.
func (p *program) want(ctx context.Context, o *operator.Operator, key string, intent relay.Intent, wait time.Duration, f console.Format) error {
	gate, err := o.Note(ctx, key, intent)
	if err != nil {
		return notParked(key, err)
	}
	if f == console.FormatJSON {
		if err := console.JSON(p.out, newGateView(gate)); err != nil {
			return err
		}
	}
	p.say(f, "noted: %s of %s, %d events wait", intent.Verb, key, gate.Events)
	if wait <= 0 {
		p.say(f, "a running relay takes it up within 5 s; see feedbox parked show %s", key)
		return nil
	}
	return p.await(ctx, o, key, gate, wait, f)
}

// awaitPoll is the pause between two looks at a gate.
const awaitPoll = 200 * time.Millisecond

// await returns nil once the gate is open, and an error if a relay gave up or limit
// passes.
func (p *program) await(ctx context.Context, o *operator.Operator, key string, before relay.Gate, limit time.Duration, f console.Format) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	bar := console.NewProgress(p.errOut, "sending", before.Events)
	defer bar.Done()
	left := before.Events
	tick := time.NewTicker(awaitPoll)
	defer tick.Stop()
	for {
		gate, err := o.Parked.Gate(bounded, key)
		switch {
		case fault.Is(err, fault.NotFound):
			bar.Done()
			p.say(f, "done: the key %s flows again", key)
			return nil
		case bounded.Err() != nil: // said below
		case err != nil:
			return err
		case gate.Intent == nil && gate.Attempts > before.Attempts:
			return console.Advise(errors.New(gate.Error), "the key stays parked; feedbox parked show "+key)
		default:
			bar.Add(int(max(0, left-gate.Events)))
			left = min(left, gate.Events)
		}
		select {
		case <-tick.C:
		case <-bounded.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return console.Advise(fmt.Errorf("no relay was done within %s; what is wanted stays noted", limit), "feedbox leases ls shows whether a relay runs, feedbox parked show "+key+" what became of it")
		}
	}
}
