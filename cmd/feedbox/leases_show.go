package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

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
				l, err := leaseNamed(leases, args[0])
				if err != nil {
					return err
				}
				v := newLeaseView(l, o.Silence(l, time.Now()))
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
