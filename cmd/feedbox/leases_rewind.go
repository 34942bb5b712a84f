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
	cmd := p.leasesVerb(quick, "all leases", &cobra.Command{
		Use:   "rewind LEASE... | --all --to beginning|now|TIME",
		Short: "Move checkpoints, even if events are repeated or skipped",
		Long: `Move checkpoints, even if events are repeated or skipped. Moving a checkpoint ahead
loses the events between. To send events again use feedbox replay, which is safer: it
shows the events first and never moves a checkpoint ahead.`,
		PreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			if start, consequence, err = parseRewind(to); err != nil {
				return usage(cmd, err)
			}
			return nil
		},
	}, func(ctx context.Context, _ *config.Relay, o *operator.Operator, s selection) (string, error) {
		if to != "now" {
			if err := o.RequireAnyStart(); err != nil {
				return "", err
			}
		}
		if err := p.confirm(yes, "The checkpoints of %s move to %s. %s", s.label, to, consequence); err != nil {
			return "", err
		}
		return fmt.Sprintf("the owners of %s continue from %s after their current page; see feedbox leases ls%s", s.label, to, p.flag()), o.Leases.Rewind(ctx, start, s.ids...)
	})
	cmd.Flags().StringVar(&to, "to", "", "beginning, now, a time (2026-01-31T08:00:00Z) or an age (2h)")
	yesFlag(cmd, &yes)
	return cmd
}

// parseRewind parses --to and returns the consequence to confirm.
func parseRewind(to string) (changefeed.Start, string, error) {
	switch to {
	case "":
		return changefeed.Start{}, "", fmt.Errorf("--to is missing: give beginning, now or a time")
	case "beginning":
		return changefeed.FromBeginning(), "Every stored event is sent again. The topic drops the duplicates within its window; consumers get the other events twice.", nil
	case "now":
		return changefeed.FromNow(), "UNSENT EVENTS ARE SKIPPED FOR GOOD.", nil
	}
	t, err := parseWhen(to)
	if err != nil {
		return changefeed.Start{}, "", fmt.Errorf("--to %w", err)
	}
	return changefeed.FromTime(t), "Changes since " + console.Time(t) + " are sent again. Leases whose checkpoint is before that time SKIP the events between for good.", nil
}

func (p *program) leasesRestartCommand() *cobra.Command {
	var yes bool
	cmd := p.leasesVerb(long, "all leases", &cobra.Command{
		Use:   "restart LEASE... | --all",
		Short: "Start again from the beginning after a restore or failover",
		Long: `Start again from the beginning, after the container was restored or its account failed
over. Positions and the progress of keys before that count for nothing, because the
container has other events at the same positions. Every event that the container still
has is sent again. The command shows how many these are before it asks.`,
	}, func(ctx context.Context, cfg *config.Relay, o *operator.Operator, s selection) (string, error) {
		bar := console.NewProgress(p.errOut, "reading the change feed", -1)
		plan, err := o.PlanRestart(ctx, 0, bar.Add, s.ids...)
		bar.Done()
		if err != nil {
			return "", err
		}
		table := console.NewTable("LEASE", "EVENTS", "OLDEST", "NOTE")
		events, unknown := 0, 0
		for _, r := range plan {
			count, oldest := fmt.Sprint(r.Events), ""
			if events += r.Events; r.Events > 0 {
				oldest = console.Time(r.Oldest)
			}
			if r.Left != "" {
				count = "unknown"
				unknown++
			}
			table.Row(changefeed.LeaseName(r.Lease), count, oldest, r.Left)
		}
		if err := table.Write(p.out, "there are no leases of processor "+cfg.Processor+" yet"); err != nil {
			return "", err
		}
		if err := p.confirm(yes, "%s start from the beginning: %s sent again. The topic drops the duplicates within its window; consumers get the others twice.", s.label, resent(events, unknown)); err != nil {
			return "", err
		}
		ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errNoAnswer)
		defer cancel()
		return fmt.Sprintf("restart of %s from the beginning, with a new history; see feedbox leases ls%s", s.label, p.flag()), o.Leases.Restart(ctx, s.ids...)
	})
	yesFlag(cmd, &yes)
	return cmd
}

// resent names the events that a restart sends again.
func resent(events, unknownRanges int) string {
	if unknownRanges > 0 {
		return fmt.Sprintf("at least %d events, and an unknown number of %d ranges that could not be read, are", events, unknownRanges)
	}
	return fmt.Sprintf("these %d events are", events)
}

func (p *program) leasesPauseCommand() *cobra.Command {
	var yes bool
	cmd := p.leasesVerb(quick, "all leases, including future ones", &cobra.Command{
		Use:   "pause LEASE... | --all",
		Short: "Pause sending; owners keep their leases",
	}, func(ctx context.Context, cfg *config.Relay, o *operator.Operator, s selection) (string, error) {
		noted := s.label + " pause; unsent events can expire, see feedbox lag" + p.flag()
		if !s.all {
			return noted, o.Leases.PauseLeases(ctx, s.ids...)
		}
		what := "anything"
		if len(cfg.More) > 0 {
			what += " of container " + cfg.Cosmos.Container
		}
		if err := p.confirm(yes, "No relay sends %s until feedbox leases resume --all%s. Events wait, and expire after %s.", what, p.flag(), cfg.EventTTL); err != nil {
			return "", err
		}
		return noted, o.Leases.Pause(ctx)
	})
	yesFlag(cmd, &yes)
	return cmd
}

func (p *program) leasesResumeCommand() *cobra.Command {
	return p.leasesVerb(quick, "all leases, whether paused by name or by --all", &cobra.Command{
		Use:   "resume LEASE... | --all",
		Short: "Resume paused leases",
	}, func(ctx context.Context, _ *config.Relay, o *operator.Operator, s selection) (string, error) {
		noted := s.label + " resume"
		if s.all {
			if err := o.Leases.Resume(ctx); err != nil {
				return "", err
			}
		} else if paused, err := o.Leases.Paused(ctx); err != nil {
			return "", err
		} else if paused { // by a request that is not in the leases, so they cannot be resumed by name
			noted += ", but all ranges are paused: nothing is sent until feedbox leases resume --all" + p.flag()
		}
		return noted, o.Leases.ResumeLeases(ctx, s.ids...)
	})
}

func (p *program) leasesReleaseCommand() *cobra.Command {
	return p.leasesVerb(quick, "all leases", &cobra.Command{
		Use:   "release LEASE... | --all",
		Short: "Release leases once; the relays redistribute them",
	}, func(ctx context.Context, _ *config.Relay, o *operator.Operator, s selection) (string, error) {
		return "the owners of " + s.label + " release them at their next renewal", o.Leases.Release(ctx, s.ids...)
	})
}

func (p *program) leasesRetryCommand() *cobra.Command {
	return p.leasesVerb(quick, "all leases", &cobra.Command{
		Use:   "retry LEASE... | --all",
		Short: "Reset failure counts and resume stopped ranges",
		Long: `Reset failure counts and resume stopped ranges.

This affects documents that are still being retried. Parked events are sent by
feedbox parked retry.`,
	}, func(ctx context.Context, _ *config.Relay, o *operator.Operator, s selection) (string, error) {
		return "reset of the failure counts of " + s.label, o.Leases.Retry(ctx, s.ids...)
	})
}
