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
		Long: `List the leases in the order of their ranges: who owns each, how often it changed
hands, the last position of its checkpoint, how long ago that change was made and the
lease was written.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.operate(cmd, false, quick, func(ctx context.Context, cfg *config.Relay, o *operator.Operator) error {
				leases, err := o.Leases.Leases(ctx)
				refused, _ := errors.AsType[*changefeed.RefusedError](err)
				if err != nil && refused == nil {
					return err
				}
				views := make([]leaseView, len(leases))
				table := console.NewTable("LEASE", "OWNER", "EPOCH", "LSN", "CHANGED", "WRITTEN", "WANTED", "HEALTH")
				table.Paint = p.paintStatus(7)
				for i, l := range leases {
					v := newLeaseView(l, o.Silence(l, time.Now()))
					views[i] = v
					state := v.Health
					if l.State != changefeed.LeaseLive {
						state = v.State
					}
					table.Row(v.Lease, console.Tail(v.Owner, ownerWidth), v.Epoch, v.LSN, since(v.Changed), since(v.Written), strings.Join(v.Wanted, ", "), state)
				}
				if err := p.write(format, views, table, "there are no leases of processor "+cfg.Processor+" yet: no relay has started"); err != nil {
					return err
				}
				if paused, err := o.Leases.Paused(ctx); err != nil {
					return err
				} else if paused {
					p.say(format, "all relays are told to pause; feedbox leases resume --all ends it")
				}
				return leasesWhole(leases, refused)
			})
		},
	}
	outputFlag(cmd, &format)
	return cmd
}

// ownerWidth is how much of an owner's name tables show: its end, which tells pods apart.
const ownerWidth = 20

// leasesWhole is an error if a part of the key space is read by nobody.
func leasesWhole(leases []changefeed.Lease, refused *changefeed.RefusedError) error {
	if refused != nil {
		return invariantError{console.Advise(refused, "set FEEDBOX_PROCESSOR to a name of its own, or remove the records named")}
	}
	if gaps := operator.Uncovered(leases); len(gaps) > 0 {
		return invariantError{console.Advise(fmt.Errorf("no lease covers %s: their events are not sent", strings.Join(gaps, ", ")), "a running relay makes the missing leases within a minute; if it does not, restart it and see its log")}
	}
	return nil
}
