package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

// findingView is the output form of a finding.
type findingView struct {
	Check  string `json:"check"`
	Status string `json:"status"`
	Detail string `json:"detail"`
	Next   string `json:"next,omitempty"`
}

func (p *program) doctorCommand() *cobra.Command {
	var format console.Format
	options := operator.DoctorOptions{}
	process := string(operator.ProcessRelay)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the environment of the relay or the API",
		Long: `Check the environment of the relay, or with --process api that of the API: names,
identity and roles, containers, clock; for the relay also topic and leases. Every
problem is printed with its fix. Run it with the identity of that process. It writes
and sends nothing. The exit code is 1 if a problem keeps the process from working.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if u, err := url.Parse(options.Management); options.Management != "" && (err != nil || u.Host == "") {
				return usage(cmd, fmt.Errorf("--servicebus-admin %q: give a URL such as http://127.0.0.1:5300", options.Management))
			}
			options.Process = operator.Process(process)
			if options.Process != operator.ProcessRelay && options.Process != operator.ProcessAPI {
				return usage(cmd, fmt.Errorf("--process %q: give relay or api", process))
			}
			if options.Each < time.Second {
				return usage(cmd, fmt.Errorf("--each %s: give at least 1s", options.Each))
			}
			if options.Process == operator.ProcessAPI {
				if p.container != "" {
					return usage(cmd, errors.New("--container is for the relay: the API has only FEEDBOX_COSMOS_CONTAINER"))
				}
				p.environ = append(p.environ, "FEEDBOX_RELAY_CONTAINERS=")
			}
			return p.operate(cmd, options.Process == operator.ProcessRelay, long, func(ctx context.Context, _ *config.Relay, o *operator.Operator) error {
				return p.examine(ctx, o, options, format)
			})
		},
	}
	outputFlag(cmd, &format)
	cmd.Flags().StringVar(&options.Management, "servicebus-admin", "", "management API of an emulator (default https on the namespace)")
	cmd.Flags().StringVar(&process, "process", process, "process to check: relay or api")
	cmd.Flags().DurationVar(&options.Each, "each", 15*time.Second, "timeout of each check")
	return cmd
}

func (p *program) examine(ctx context.Context, o *operator.Operator, options operator.DoctorOptions, f console.Format) error {
	views := []findingView{}
	bar := console.NewProgress(p.errOut, "examining", -1)
	options.Found = func(found operator.Finding) {
		if found.Next == "" && found.Status != operator.FindingOK {
			found.Next = "run feedbox doctor again; if the error stays, correct what it names"
		}
		views = append(views, findingView{found.Check, string(found.Status), console.Clean(found.Detail), found.Next})
		bar.Add(1)
	}
	o.Diagnose(ctx, options)
	bar.Done()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	table := console.NewTable("CHECK", "STATUS", "FOUND")
	table.Paint = p.paintStatus(1)
	failed := false
	for _, v := range views {
		table.Row(v.Check, v.Status, v.Detail)
		table.Next(v.Next)
		failed = failed || v.Status == string(operator.FindingFailed)
	}
	if err := p.write(f, views, table, ""); err != nil {
		return err
	}
	if failed {
		return errReported
	}
	return nil
}
