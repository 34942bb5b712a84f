package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

func (p *program) parkedSkipCommand() *cobra.Command {
	var format console.Format
	var by, note, event string
	var wait time.Duration
	var yes bool
	cmd := &cobra.Command{
		Use:   "skip KEY --event ID --note WHY",
		Short: "Skip the first parked event of a key permanently",
		Args:  oneArg("the key"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var faults []error
			if event == "" {
				faults = append(faults, errors.New("--event is missing: give the id of the first event of feedbox parked show "+args[0]))
			}
			if strings.TrimSpace(note) == "" {
				faults = append(faults, errors.New("--note is missing: give the reason to record"))
			}
			if err := errors.Join(faults...); err != nil {
				return usage(cmd, err)
			}
			return p.operate(cmd, false, long, func(ctx context.Context, _ *config.Relay, o *operator.Operator) error {
				if err := p.checkFirst(ctx, o, args[0], event); err != nil {
					return err
				}
				if err := p.confirm(yes, "Event %s of key %s will never be %s. Its document is kept in the record.", event, args[0], map[bool]string{true: "handled", false: "sent"}[p.consumer != ""]); err != nil {
					return err
				}
				intent := relay.Intent{Verb: relay.VerbSkip, Event: event, By: p.operatorName(by), Note: note}
				return p.request(ctx, o, args[0], intent, wait, format)
			})
		},
	}
	outputFlag(cmd, &format)
	p.consumerFlag(cmd)
	intentFlags(cmd, &by, &note, &wait)
	cmd.Flags().StringVar(&event, "event", "", "id of the first parked event of the key")
	yesFlag(cmd, &yes)
	return cmd
}

// checkFirst refuses early what a relay would refuse later: an event that is not the first.
func (p *program) checkFirst(ctx context.Context, o *operator.Operator, key, event string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errNoAnswer)
	defer cancel()
	switch err := o.FirstInLine(ctx, key, event); {
	case fault.Is(err, fault.Conflict):
		return console.Advise(err, "feedbox parked show "+key+p.flag())
	default:
		return p.notParked(key, err)
	}
}

func (p *program) parkedAdoptCommand() *cobra.Command {
	var format console.Format
	var yes bool
	cmd := &cobra.Command{
		Use:   "adopt",
		Short: "Make this processor the owner of the parked events",
		Long: `Make the processor of FEEDBOX_PROCESSOR the owner of the parked events.

Parked events belong to one processor; relays of another one refuse to start. Adopt them
after a processor was renamed. All relays of the earlier name must have stopped. A new
name has no positions: set FEEDBOX_RELAY_START, otherwise all stored events are sent
again.

It also records the shards of FEEDBOX_SERVICEBUS_SHARDS, the last step of their change.
If relays have several containers, run it once for each of them, with --container.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.operate(cmd, false, quick, func(ctx context.Context, cfg *config.Relay, o *operator.Operator) error {
				owner, err := o.ParkedOwner(ctx)
				switch {
				case errors.Is(err, operator.ErrDamagedOwner):
					if err := p.confirm(yes, "The parked events will belong to %s. Their earlier processor and the shards are not known. All relays must have stopped.", cfg.Processor); err != nil {
						return err
					}
				case err != nil:
					return err
				}
				if owner != "" && owner != cfg.Processor {
					if err := p.confirm(yes, "The parked events of processor %s will belong to %s. Relays of %s must not run any more.", owner, cfg.Processor, owner); err != nil {
						return err
					}
				}
				if changed := o.ChangedShards(ctx); changed != nil {
					if err := p.confirm(yes, "%s. All relays must have stopped, and all subscriptions of these topics must be empty.", changed); err != nil {
						return err
					}
				}
				if owner, err = o.Adopt(ctx); err != nil {
					return err
				}
				if format == console.FormatJSON {
					return console.JSON(p.out, map[string]string{"owner": cfg.Processor, "previous": owner})
				}
				p.say(format, "the parked events belong to processor %s", cfg.Processor)
				return nil
			})
		},
	}
	outputFlag(cmd, &format)
	yesFlag(cmd, &yes)
	return cmd
}

// sayOthers lists the lease sets of other processors below a table.
func (p *program) sayOthers(ctx context.Context, format console.Format, o *operator.Operator) {
	others, err := o.OtherLeaseSets(ctx)
	if err != nil {
		p.say(format, "other lease sets: unknown: %v", err)
		return
	}
	for _, set := range others {
		switch {
		case set.Purpose != "":
			p.say(format, "leases of feedbox %s here: %s", set.Purpose, set.Name)
		case set.Same:
			p.say(format, "processor %s has leases of the same container here", set.Name)
		default:
			p.say(format, "leases of another container here: %s", set.Name)
		}
	}
}
