package main

import (
	"context"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

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
again.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.operate(cmd, false, quick, func(ctx context.Context, cfg *config.Relay, o *operator.Operator) error {
				owner, err := o.ParkedOwner(ctx)
				if err != nil {
					return err
				}
				if owner != "" && owner != cfg.Processor {
					if err := p.confirm(yes, "The parked events of processor %s will belong to %s. Relays of %s must not run any more.", owner, cfg.Processor, owner); err != nil {
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
		if set.Same {
			p.say(format, "processor %s has leases of the same container here", set.Name)
		} else {
			p.say(format, "leases of another container here: %s", set.Name)
		}
	}
}
