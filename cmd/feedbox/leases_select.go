package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"feedbox/changefeed"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

// selection is the leases that a command line names.
type selection struct {
	all   bool
	ids   []string // empty for all
	label string   // for messages, for example "lease 7e9d"
}

// leasesVerb completes a command that takes lease names, or the flag --all with the help
// text all. do stores the request and returns the confirmation to print.
func (p *program) leasesVerb(all string, cmd *cobra.Command, do func(ctx context.Context, cfg *config.Relay, o *operator.Operator, s selection) (noted string, err error)) *cobra.Command {
	var s selection
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if (len(args) == 0) != s.all {
			return usage(cmd, fmt.Errorf("%s takes the names of one or more leases, or --all", cmd.CommandPath()))
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.operate(cmd, false, quick, func(ctx context.Context, cfg *config.Relay, o *operator.Operator) (err error) {
			if s.ids, s.label, err = selectLeases(ctx, o, args); err != nil {
				return err
			}
			noted, err := do(ctx, cfg, o, s)
			if err == nil {
				p.say(console.FormatTable, "noted: %s", noted)
			}
			return err
		})
	}
	cmd.Flags().BoolVar(&s.all, "all", false, all)
	return cmd
}

// selectLeases returns the ids of the named leases; no names, no ids.
func selectLeases(ctx context.Context, o *operator.Operator, names []string) (ids []string, label string, err error) {
	if len(names) == 0 {
		return nil, "all leases", nil
	}
	leases, err := o.Leases.Leases(ctx)
	if err != nil {
		return nil, "", err
	}
	for _, name := range names {
		l, err := leaseNamed(leases, name)
		if err != nil {
			return nil, "", err
		}
		ids = append(ids, l.ID)
	}
	if len(names) == 1 {
		return ids, "lease " + names[0], nil
	}
	return ids, fmt.Sprintf("%d leases", len(names)), nil
}

// leaseNamed finds a lease by its short name, a unique prefix of that, its range or its id.
func leaseNamed(leases []changefeed.Lease, name string) (changefeed.Lease, error) {
	var found []changefeed.Lease
	for _, l := range leases {
		short := changefeed.LeaseName(l.ID)
		if l.ID == name || l.Token == name || short == name {
			return l, nil
		}
		if strings.HasPrefix(short, strings.ToLower(name)) {
			found = append(found, l)
		}
	}
	switch len(found) {
	case 0:
		return changefeed.Lease{}, noSuchLease(fmt.Errorf("there is no lease %s", name))
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, l := range found {
		names[i] = changefeed.LeaseName(l.ID)
	}
	return changefeed.Lease{}, noSuchLease(fmt.Errorf("%s matches %s: give more digits", name, strings.Join(names, " or ")))
}
