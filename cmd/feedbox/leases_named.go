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

// meant are the leases that a person names: some, or all.
type meant struct {
	all   bool
	ids   []string // none for all
	words string   // what they are called in a sentence
}

// leasesVerb makes cmd a verb about some leases, or all as all says. do does it and says
// what was noted.
func (p *program) leasesVerb(all string, cmd *cobra.Command, do func(ctx context.Context, cfg *config.Relay, o *operator.Operator, m meant) (noted string, err error)) *cobra.Command {
	var m meant
	cmd.Args = someOrAll("leases", &m.all)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.operate(cmd, false, quick, func(ctx context.Context, cfg *config.Relay, o *operator.Operator) (err error) {
			if m.ids, m.words, err = leasesMeant(ctx, o, args); err != nil {
				return err
			}
			noted, err := do(ctx, cfg, o, m)
			if err == nil {
				p.say(console.FormatTable, "noted: %s", noted)
			}
			return err
		})
	}
	cmd.Flags().BoolVar(&m.all, "all", false, all)
	return cmd
}

// leasesMeant finds the ids of leases by what a person calls them; none named stays none.
func leasesMeant(ctx context.Context, o *operator.Operator, names []string) (ids []string, words string, err error) {
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

// leaseNamed finds a lease by its short name or the beginning of it, its range or its id.
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
	return changefeed.Lease{}, noSuchLease(fmt.Errorf("%s may be %s: give more of the name", name, strings.Join(names, " or ")))
}
