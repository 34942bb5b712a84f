package main

import (
	"context"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
)

func (p *program) leasesPauseCommand() *cobra.Command {
	var yes bool
	cmd := p.leasesVerb("all leases, including future ones", &cobra.Command{
		Use:   "pause LEASE... | --all",
		Short: "Pause sending; owners keep their leases",
	}, func(ctx context.Context, cfg *config.Relay, o *operator.Operator, s selection) (string, error) {
		noted := s.label + " pause; unsent events can expire, see feedbox lag"
		if !s.all {
			return noted, o.Leases.PauseLeases(ctx, s.ids...)
		}
		if err := p.confirm(yes, "No relay sends anything until feedbox leases resume --all. Events wait, and expire after %s.", cfg.EventTTL); err != nil {
			return "", err
		}
		return noted, o.Leases.Pause(ctx)
	})
	yesFlag(cmd, &yes)
	return cmd
}

func (p *program) leasesResumeCommand() *cobra.Command {
	return p.leasesVerb("all leases, whether paused by name or by --all", &cobra.Command{
		Use:   "resume LEASE... | --all",
		Short: "Resume paused leases",
	}, func(ctx context.Context, _ *config.Relay, o *operator.Operator, s selection) (string, error) {
		if s.all {
			if err := o.Leases.Resume(ctx); err != nil {
				return "", err
			}
		}
		return s.label + " resume", o.Leases.ResumeLeases(ctx, s.ids...)
	})
}

func (p *program) leasesReleaseCommand() *cobra.Command {
	return p.leasesVerb("all leases", &cobra.Command{
		Use:   "release LEASE... | --all",
		Short: "Release leases once; the relays redistribute them",
	}, func(ctx context.Context, _ *config.Relay, o *operator.Operator, s selection) (string, error) {
		return "the owners of " + s.label + " release them at their next renewal", o.Leases.Release(ctx, s.ids...)
	})
}

func (p *program) leasesRetryCommand() *cobra.Command {
	return p.leasesVerb("all leases", &cobra.Command{
		Use:   "retry LEASE... | --all",
		Short: "Reset failure counts and resume stopped ranges",
		Long: `Reset failure counts and resume stopped ranges.

This affects documents that are still being retried. Parked events are sent by
feedbox parked retry.`,
	}, func(ctx context.Context, _ *config.Relay, o *operator.Operator, s selection) (string, error) {
		return "reset of the failure counts of " + s.label, o.Leases.Retry(ctx, s.ids...)
	})
}
