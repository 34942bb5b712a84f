package main

import (
	"cmp"
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

func (p *program) leasesCommand() *cobra.Command {
	cmd := group("leases", "Show and control the owners of the ranges",
		p.leasesLsCommand(), p.leasesShowCommand(), p.leasesReleaseCommand(), p.leasesPauseCommand(), p.leasesResumeCommand(), p.leasesRetryCommand(), p.leasesRewindCommand(), p.leasesRestartCommand())
	cmd.Long = `Show and control the owners of the ranges of the change feed.

A lease represents a range of the key space; it has one owner and a checkpoint. These
commands store a request on the lease; its owner carries it out between two pages.
Name a lease as feedbox leases ls, logs and metrics do, by the first digits of that
name, by its range, or by its id.`
	return cmd
}

// leaseView is the output form of a lease.
type leaseView struct {
	Lease        string     `json:"lease"`
	Range        string     `json:"range"`
	ID           string     `json:"id"`
	State        string     `json:"state"`
	Owner        string     `json:"owner"`
	Previous     string     `json:"previousOwner,omitempty"`
	Epoch        int64      `json:"epoch"`
	LSN          int64      `json:"lsn"`
	Continuation string     `json:"continuation,omitempty"`
	Changed      *time.Time `json:"lastChange,omitempty"`
	Written      *time.Time `json:"written,omitempty"`
	Health       string     `json:"health"`
	Silent       float64    `json:"silentSeconds,omitempty"`
	Failures     int        `json:"failures"`
	Error        string     `json:"error,omitempty"`
	Pending      []string   `json:"wanted,omitempty"`
}

// newLeaseView needs paused, because the request to pause all leases is not in the leases.
func newLeaseView(l changefeed.Lease, silent time.Duration, paused bool) leaseView {
	v := leaseView{
		Lease: changefeed.LeaseName(l.ID), Range: l.Token, ID: l.ID, State: string(l.State), Owner: l.Owner, Previous: l.Previous, Epoch: l.Epoch, LSN: l.LSN,
		Continuation: l.Continuation, Health: healthOf(operator.Range{Lease: l, Silent: silent, Paused: paused}, time.Now()), Silent: silent.Seconds(), Failures: l.Failures, Error: l.Error, Pending: pending(l.Request),
	}
	if l.State == changefeed.LeaseLive {
		v.State = "live"
	}
	if l.ChangeTime > 0 {
		t := time.Unix(l.ChangeTime, 0).UTC()
		v.Changed = &t
	}
	if !l.Timestamp.IsZero() {
		v.Written = &l.Timestamp
	}
	return v
}

// healthOf formats the condition of a range, and for how long it has lasted. For an expired
// lease that is the silence of its owner.
func healthOf(r operator.Range, now time.Time) string {
	condition, lasted := r.Condition(now)
	switch {
	case condition == operator.Expired:
		return "expired, owner silent for " + console.Age(lasted)
	case condition == operator.Unread && lasted > 0:
		return "not read for " + console.Age(lasted)
	case lasted > 0:
		return string(condition) + " for " + console.Age(lasted)
	}
	return string(condition)
}

// pending lists the requests of operators in the record. The owner removes those that it has carried out,
// except a pause, which an operator ends.
func pending(r changefeed.Request) []string {
	var w []string
	if r.Paused {
		w = append(w, "pause")
	}
	if r.Release {
		w = append(w, "release")
	}
	if r.Retry {
		w = append(w, "retry")
	}
	switch {
	case r.History != "":
		w = append(w, "restart from the beginning")
	case r.Rewind != nil:
		to := "to a position"
		switch {
		case !r.Rewind.Since.IsZero():
			to = "to " + console.Time(r.Rewind.Since)
		case r.Rewind.Continuation == "":
			to = "to the beginning"
		}
		w = append(w, "rewind "+to)
	}
	return w
}

// since formats the time that has passed; "" for nil.
func since(t *time.Time) string {
	if t == nil {
		return ""
	}
	return console.Age(time.Since(*t))
}

// ago is since with the word ago.
func ago(t *time.Time) string {
	if t == nil {
		return ""
	}
	return since(t) + " ago"
}

// noSuchLease adds the command that lists the leases.
func (p *program) noSuchLease(err error) error {
	return console.Advise(err, "feedbox leases ls"+p.flag()+" lists the leases")
}

// selection is the leases that a command line names.
type selection struct {
	all   bool
	ids   []string // empty for all
	label string   // for messages, for example "lease 7e9d"
}

// leasesVerb completes a command that takes lease names, or the flag --all with the help
// text all. do stores the request and returns the confirmation to print.
func (p *program) leasesVerb(limit duration, all string, cmd *cobra.Command, do func(ctx context.Context, cfg *config.Relay, o *operator.Operator, s selection) (noted string, err error)) *cobra.Command {
	var s selection
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if (len(args) == 0) != s.all {
			return usage(cmd, fmt.Errorf("%s takes the names of one or more leases, or --all", cmd.CommandPath()))
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.operate(cmd, false, limit, func(ctx context.Context, cfg *config.Relay, o *operator.Operator) (err error) {
			if s.all {
				err = p.requireLeases(ctx, cfg, o, cmd.Name() == "pause" || cmd.Name() == "resume")
			}
			if err != nil {
				return err
			}
			if s.ids, s.label, err = p.selectLeases(ctx, o, args); err != nil {
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

// requireLeases returns an error if the processor has no leases, because its name may be misspelled. A request
// that also applies to future leases needs none, unless another processor has some.
func (p *program) requireLeases(ctx context.Context, cfg *config.Relay, o *operator.Operator, future bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errNoAnswer)
	defer cancel()
	leases, err := o.Leases.Leases(ctx)
	if refused, _ := errors.AsType[*changefeed.RefusedError](err); len(leases) > 0 || refused != nil {
		return nil // the leases that a processor cannot continue are its leases
	}
	if err != nil {
		return err
	}
	if paused, err := o.Leases.Paused(ctx); paused || err != nil {
		return err // a pause outlives the leases, and must be removable
	}
	others, err := o.OtherLeaseSets(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, set := range others {
		if set.Same && set.Purpose == "" {
			names = append(names, set.Name)
		}
	}
	next := "start a relay: feedbox relay"
	switch {
	case len(names) > 0:
		next = "set FEEDBOX_PROCESSOR to a processor with leases: " + strings.Join(names, ", ")
	case future:
		return nil
	}
	return console.Advise(errors.New(noLeases(cfg)), next)
}

func noLeases(cfg *config.Relay) string {
	return "there are no leases of processor " + cfg.Processor + " yet: no relay has started"
}

// selectLeases returns the ids of the named leases; no names, no ids.
func (p *program) selectLeases(ctx context.Context, o *operator.Operator, names []string) (ids []string, label string, err error) {
	if len(names) == 0 {
		return nil, "all leases", nil
	}
	leases, err := o.Leases.Leases(ctx)
	if err != nil {
		return nil, "", err
	}
	for _, name := range names {
		l, err := p.leaseNamed(leases, name)
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
func (p *program) leaseNamed(leases []changefeed.Lease, name string) (changefeed.Lease, error) {
	var found []changefeed.Lease
	for _, l := range leases {
		short := changefeed.LeaseName(l.ID)
		if l.ID == name || l.Token == name || short == name {
			return l, nil
		}
		if name != "" && strings.HasPrefix(short, strings.ToLower(name)) {
			found = append(found, l)
		}
	}
	switch len(found) {
	case 0:
		return changefeed.Lease{}, p.noSuchLease(fmt.Errorf("there is no lease %s", cmp.Or(name, "with an empty name")))
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, l := range found {
		names[i] = changefeed.LeaseName(l.ID)
	}
	return changefeed.Lease{}, p.noSuchLease(fmt.Errorf("%s matches %s: give more digits", name, strings.Join(names, " or ")))
}
