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
		Short: "Send the parked events of a key in order",
		Long: `Send the parked events of a key in order. A relay does it.

It sends the events as they were parked. With --from-store it sends their current
documents from the store instead, for events that were corrected there.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 || (len(args) == 1) == (all || reason != "") || all && reason != "" {
				return usage(cmd, fmt.Errorf("%s takes a key, --all or --reason REASON, got %q", cmd.CommandPath(), args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if fromStore && p.consumer != "" {
				return usage(cmd, errors.New("--from-store is for parked events of the relay: a consumer retries them as they were parked"))
			}
			return p.operate(cmd, false, long, func(ctx context.Context, _ *config.Relay, o *operator.Operator) error {
				intent := relay.Intent{Verb: relay.VerbRetry, By: p.operatorName(by), Note: note, FromStore: fromStore}
				if len(args) == 0 {
					return p.requestAll(ctx, o, reason, intent, yes, wait, format)
				}
				if fromStore {
					if err := p.compareStored(ctx, o, args[0], format); err != nil {
						return err
					}
				}
				return p.request(ctx, o, args[0], intent, wait, format)
			})
		},
	}
	outputFlag(cmd, &format)
	p.consumerFlag(cmd)
	intentFlags(cmd, &by, &note, &wait)
	yesFlag(cmd, &yes)
	cmd.Flags().BoolVar(&all, "all", false, "retry every parked key")
	filledFlag(cmd, &reason, "reason", "retry every key parked for this reason")
	cmd.Flags().BoolVar(&fromStore, "from-store", false, "send the current documents from the store")
	return cmd
}

func intentFlags(cmd *cobra.Command, by, note *string, wait *time.Duration) {
	cmd.Flags().StringVar(by, "by", "", "operator to record (default the login name)")
	cmd.Flags().StringVar(note, "note", "", "reason to record")
	cmd.Flags().DurationVar(wait, "wait", 0, "wait this long for a relay to finish")
}

// request stores an intent on the gate of key. If wait is positive, it waits until a relay
// has carried it out.
func (p *program) request(ctx context.Context, o *operator.Operator, key string, intent relay.Intent, wait time.Duration, f console.Format) error {
	gate, err := o.Note(ctx, key, intent)
	if err != nil {
		return p.notParked(key, err)
	}
	return p.noted(ctx, o, key, gate, intent, wait, f)
}

// noted reports an intent that is stored in gate, and waits as request does.
func (p *program) noted(ctx context.Context, o *operator.Operator, key string, gate relay.Gate, intent relay.Intent, wait time.Duration, f console.Format) error {
	if f == console.FormatJSON {
		if err := console.JSON(p.out, newGateView(gate)); err != nil {
			return err
		}
	}
	p.say(f, "noted: %s of %s, %d events wait", intent.Verb, key, gate.Events)
	if wait <= 0 {
		p.say(f, "a running %s starts within 5 s; see feedbox parked show %s%s", p.party(), key, p.flag())
		return nil
	}
	return p.await(ctx, o, key, gate, wait, f)
}

// awaitPoll is the time between two reads of a gate.
const awaitPoll = 200 * time.Millisecond

// await returns nil once the gate is open. It returns an error if a relay could not send
// the events or limit passes.
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
		case bounded.Err() != nil: // returned below
		case err != nil:
			return err
		case gate.Intent == nil && gate.Attempts > before.Attempts:
			return console.Advise(errors.New(gate.Error), "the key stays parked; feedbox parked show "+key+p.flag())
		case gate.Intent == nil && !gate.Closing.At.Equal(before.Closing.At): // it was open in between
			return console.Advise(fmt.Errorf("the key flowed and is parked again: %s", gate.Closing.Error), "feedbox parked show "+key+p.flag())
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
			return console.Advise(fmt.Errorf("no %s finished within %s; the request stays pending", p.party(), limit), "feedbox leases ls shows whether a relay runs, feedbox parked show "+key+p.flag()+" the result")
		}
	}
}

// requestAll stores an intent on all gates, or on those closed for reason.
func (p *program) requestAll(ctx context.Context, o *operator.Operator, reason string, intent relay.Intent, yes bool, wait time.Duration, f console.Format) error {
	bounded, cancel := context.WithTimeoutCause(ctx, answerTimeout, errNoAnswer)
	defer cancel()
	gates, err := o.GatesFor(bounded, reason)
	if err != nil {
		return err
	}
	var events int64
	for _, g := range gates {
		events += g.Events
	}
	switch {
	case len(gates) == 0 && reason != "":
		return console.Advise(fmt.Errorf("no key is parked for the reason %s", reason), "feedbox parked ls"+p.flag()+" shows the reasons")
	case len(gates) == 0 && p.consumer != "" && f != console.FormatJSON:
		p.say(f, "%s", p.noParked(bounded, o))
		return nil
	case len(gates) > 0:
		if err := p.confirm(yes, "%d keys with %d events are sent, each in its order.", len(gates), events); err != nil {
			return err
		}
	}
	noted := []relay.Gate{}
	views := []gateView{}
	err = o.NoteAll(ctx, gates, intent, func(g relay.Gate) { noted, views = append(noted, g), append(views, newGateView(g)) })
	if f == console.FormatJSON { // also after a failure, with those that were noted
		err = errors.Join(err, console.JSON(p.out, views))
	}
	if err != nil {
		return err
	}
	p.say(f, "noted: retry of %d keys, %d events wait", len(noted), events)
	return p.awaitAll(ctx, o, noted, wait, f)
}

// awaitAll waits until all gates are open, for limit in total; 0 does not wait.
func (p *program) awaitAll(ctx context.Context, o *operator.Operator, gates []relay.Gate, limit time.Duration, f console.Format) error {
	var faults []error
	for end := time.Now().Add(limit); limit > 0 && len(gates) > 0; gates = gates[1:] {
		if err := p.await(ctx, o, gates[0].Key, gates[0], time.Until(end).Round(time.Millisecond), f); err != nil {
			faults = append(faults, fmt.Errorf("key %s: %w", gates[0].Key, err))
		}
		if rest := len(gates) - 1; rest > 0 && !time.Now().Before(end) {
			faults = append(faults, fmt.Errorf("%d more keys: no %s finished within %s; the requests stay pending", rest, p.party(), limit))
			break
		}
	}
	return errors.Join(faults...)
}

// compareStored prints how the stored events of key differ from the parked ones. It refuses
// early what a relay would refuse later: an event that the store no longer has.
func (p *program) compareStored(ctx context.Context, o *operator.Operator, key string, f console.Format) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errNoAnswer)
	defer cancel()
	if _, err := o.Parked.Gate(ctx, key); err != nil {
		return p.notParked(key, err)
	}
	c, err := o.CompareParked(ctx, key)
	if err != nil {
		return err
	}
	if len(c.Gone) > 0 {
		return console.Advise(fmt.Errorf("event %s of key %s is no longer in the store: it expired or was deleted", c.Gone[0], key), "feedbox parked retry "+key+p.flag()+" sends the events as they were parked")
	}
	p.say(f, "compared: of the first %d events, %d differ between the store and the parked copy", c.Events, len(c.Differ))
	for _, id := range c.Differ {
		p.say(f, "differs: %s", id)
	}
	return nil
}
