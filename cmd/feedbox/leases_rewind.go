package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"feedbox/changefeed"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

func (p *program) leasesRewindCommand() *cobra.Command {
	var yes bool
	var to, consequence string
	var start changefeed.Start
	cmd := p.leasesVerb("all leases", &cobra.Command{
		Use:   "rewind LEASE... | --all --to beginning|now|TIME",
		Short: "Move checkpoints, whatever it repeats or skips",
		Long: `Move checkpoints, whatever it repeats or skips. Moving one ahead loses the events
between. To send events again, feedbox replay is safer: it says what it will repeat
and moves nothing ahead.`,
		PreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			if start, consequence, err = parseRewind(to); err != nil {
				return usage(cmd, err)
			}
			return nil
		},
	}, func(ctx context.Context, _ *config.Relay, o *operator.Operator, m meant) (string, error) {
		if err := p.confirm(yes, "The checkpoints of %s move to %s. %s", m.words, to, consequence); err != nil {
			return "", err
		}
		return fmt.Sprintf("the owners of %s go on from %s after their current page; see feedbox leases ls", m.words, to), o.Leases.Rewind(ctx, start, m.ids...)
	})
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
