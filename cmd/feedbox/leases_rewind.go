package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"feedbox/changefeed"
	"feedbox/infrastructure/config"
	"feedbox/infrastructure/console"
	"feedbox/infrastructure/wiring"
)

func (p *program) leasesRewindCommand() *cobra.Command {
	var all, yes bool
	var to string
	cmd := &cobra.Command{
		Use:   "rewind LEASE... | --all --to beginning|now|TIME",
		Short: "Move checkpoints, whatever it repeats or skips",
		Long: `Move checkpoints, whatever it repeats or skips. Moving one ahead loses the events
between. To send events again, feedbox replay is safer: it says what it will repeat
and moves nothing ahead.`,
		Args: someOrAll("leases", &all),
		RunE: func(cmd *cobra.Command, args []string) error {
			start, consequence, err := parseRewind(to)
			if err != nil {
				return usage(cmd, err)
			}
			return p.operate(cmd, false, quick, func(ctx context.Context, _ *config.Relay, o *wiring.Operator) error {
				if err := p.confirm(yes, "The checkpoints of %s move to %s. %s", leasesNamed(args), to, consequence); err != nil {
					return err
				}
				if err := o.Leases.Rewind(ctx, start, leaseTokens(args)...); err != nil {
					return noSuchLease(err)
				}
				p.say(console.FormatTable, "noted: the owners of %s go on from %s after their current page; see feedbox leases ls", leasesNamed(args), to)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all leases")
	cmd.Flags().StringVar(&to, "to", "", "beginning, now, a time such as 2026-01-31T08:00:00Z, or how long ago, such as 2h")
	yesFlag(cmd, &yes)
	return cmd
}

// parseRewind reads where to, and says what that means.
func parseRewind(to string) (changefeed.Start, string, error) {
	switch to {
	case "":
		return changefeed.Start{}, "", fmt.Errorf("--to is missing: give beginning, now or a time")
	case "beginning":
		return changefeed.FromBeginning(), "Every stored event is sent again; the topic drops what it remembers, consumers see the rest twice.", nil
	case "now":
		return changefeed.FromNow(), "EVENTS NOT SENT YET ARE SKIPPED FOR GOOD.", nil
	}
	t, err := parseWhen(to)
	if err != nil {
		return changefeed.Start{}, "", fmt.Errorf("--to %w", err)
	}
	return changefeed.FromTime(t), "Changes since " + console.Time(t) + " are sent again; leases that have not come that far yet SKIP the events between for good.", nil
}
