package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"feedbox/changefeed"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

func (p *program) leasesLsCommand() *cobra.Command {
	var format console.Format
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the leases in the order of their ranges",
		Long: `List the leases in the order of their ranges: owner, number of ownership changes
(EPOCH), position of the checkpoint (LSN), age of the change there and of the last
write of the lease, and requests of operators in the record (PENDING). The owner
removes a request when it has carried it out. A pause stays until it is resumed.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.operate(cmd, false, quick, func(ctx context.Context, cfg *config.Relay, o *operator.Operator) error {
				leases, err := o.Leases.Leases(ctx)
				refused, _ := errors.AsType[*changefeed.RefusedError](err)
				if err != nil && refused == nil {
					return err
				}
				paused, err := o.Leases.Paused(ctx)
				if err != nil {
					return err
				}
				views := make([]leaseView, len(leases))
				table := console.NewTable("LEASE", "OWNER", "EPOCH", "LSN", "CHANGED", "WRITTEN", "PENDING", "HEALTH")
				table.Paint = p.paintStatus(7)
				for i, l := range leases {
					v := newLeaseView(l, o.Silence(l, time.Now()), paused)
					views[i] = v
					state := v.Health
					if l.State != changefeed.LeaseLive {
						state = v.State
					}
					table.Row(v.Lease, console.Tail(v.Owner, ownerWidth), v.Epoch, v.LSN, since(v.Changed), since(v.Written), strings.Join(v.Pending, ", "), state)
				}
				if err := p.write(format, views, table, noLeases(cfg)); err != nil {
					return err
				}
				if paused {
					p.say(format, "all ranges are paused; feedbox leases resume --all%s resumes them", p.flag())
				}
				p.sayOthers(ctx, format, o)
				return leasesWhole(leases, refused, cfg.EventTTL)
			})
		},
	}
	outputFlag(cmd, &format)
	return cmd
}

// ownerWidth is the number of characters of an owner's name in tables. They are its last
// ones, because only the end distinguishes the pods of a deployment.
const ownerWidth = 20

// leasesWhole returns an error if no lease covers a part of the key space.
func leasesWhole(leases []changefeed.Lease, refused *changefeed.RefusedError, ttl time.Duration) error {
	if refused != nil {
		return invariantError{console.Advise(refused, operator.RefusedAdvice(ttl))}
	}
	if gaps := operator.Uncovered(leases); len(gaps) > 0 {
		return invariantError{console.Advise(fmt.Errorf("no lease covers %s: their events are not sent", strings.Join(gaps, ", ")), "a running relay creates the missing leases within a minute; if it does not, restart it and read its log")}
	}
	return nil
}

func (p *program) leasesShowCommand() *cobra.Command {
	var format console.Format
	cmd := &cobra.Command{
		Use:   "show LEASE",
		Short: "Show everything about one lease",
		Args:  oneArg("the lease"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.operate(cmd, false, quick, func(ctx context.Context, _ *config.Relay, o *operator.Operator) error {
				leases, err := o.Leases.Leases(ctx)
				if err != nil {
					return err
				}
				l, err := p.leaseNamed(leases, args[0])
				if err != nil {
					return err
				}
				paused, err := o.Leases.Paused(ctx)
				if err != nil {
					return err
				}
				v := newLeaseView(l, o.Silence(l, time.Now()), paused)
				return p.write(format, v, leaseTable(v), "")
			})
		},
	}
	outputFlag(cmd, &format)
	return cmd
}

func leaseTable(v leaseView) *console.Table {
	t := console.NewTable()
	t.Row("lease", v.Lease)
	t.Row("range", v.Range)
	t.Row("id", v.ID)
	t.Row("state", v.State)
	t.Row("owner", v.Owner)
	t.Row("previous owner", v.Previous)
	t.Row("epoch", v.Epoch)
	t.Row("checkpoint", v.Continuation)
	t.Row("lsn", v.LSN)
	t.Row("last change", ago(v.Changed))
	t.Row("written", ago(v.Written))
	t.Row("health", v.Health)
	t.Row("failures", v.Failures)
	t.Row("error", v.Error)
	t.Row("pending", strings.Join(v.Pending, ", "))
	return t
}
