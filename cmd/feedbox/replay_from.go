package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"feedbox/domain/fault"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/azure"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

// replayFrom rewinds the leases whose checkpoint is after a time.
func (p *program) replayFrom(cmd *cobra.Command, f replayFlags) error {
	from, err := parseWhen(f.from)
	if err != nil {
		return usage(cmd, fmt.Errorf("--from %w", err))
	}
	return p.operate(cmd, false, long, func(ctx context.Context, cfg *config.Relay, o *operator.Operator) error {
		if !f.dryRun { // otherwise a script would treat a misspelled FEEDBOX_PROCESSOR as a replay
			if err := p.requireLeases(ctx, cfg, o, false); err != nil {
				return err
			}
		}
		bar := console.NewProgress(p.errOut, "reading the change feed", -1)
		plan, err := o.PlanReplay(ctx, from, f.window, bar.Add)
		bar.Done()
		if err != nil {
			return err
		}
		if len(plan) == 0 && !f.dryRun { // a pause may remain without leases
			return fault.New(fault.NotFound, "no_leases", "there are no leases of processor "+cfg.Processor+", so nothing was rewound")
		}
		v, rewind := sumReplay(plan)
		v.From, v.Window, v.DryRun = console.Time(from), f.window.String(), f.dryRun
		if err := p.showReplayFrom(f, v, cfg, from); err != nil {
			return err
		}
		if !f.dryRun && len(rewind) > 0 {
			if err := p.confirm(f.yes, "%d leases will be rewound to %s.", len(rewind), v.From); err != nil {
				return err
			}
			if err := o.Rewind(ctx, from, rewind...); err != nil {
				return err
			}
			v.Done = true
			p.say(f.format, "noted: rewind of %d leases to %s after their current page; see feedbox lag --watch%s", len(rewind), v.From, p.flag())
		}
		if f.format == console.FormatJSON {
			return console.JSON(p.out, v)
		}
		return nil
	})
}

// sumReplay adds up the ranges and returns the leases with events to send again.
func sumReplay(plan []operator.Resend) (v replayView, rewind []string) {
	v.Ranges = []resendView{}
	var sum operator.Resend
	for _, r := range plan {
		v.Ranges = append(v.Ranges, newResendView(r))
		if r.Events == 0 {
			continue
		}
		rewind, sum.Refused = append(rewind, r.Lease), sum.Refused+r.Refused
		if sum.Oldest.IsZero() || r.Oldest.Before(sum.Oldest) {
			sum.Oldest = r.Oldest
		}
		if r.Newest.After(sum.Newest) {
			sum.Newest = r.Newest
		}
		sum.Events, sum.Covered = sum.Events+r.Events, sum.Covered+r.Covered
	}
	v.resendView = newResendView(sum)
	return v, rewind
}

func (p *program) showReplayFrom(f replayFlags, v replayView, cfg *config.Relay, from time.Time) error {
	if f.format == console.FormatJSON {
		return nil // written at the end, with the result
	}
	table := console.NewTable("LEASE", "EVENTS", "COVERED", "OLDEST", "NEWEST", "NOT REWOUND")
	for _, r := range v.Ranges {
		oldest, newest := "", ""
		if r.Events > 0 {
			oldest, newest = console.Time(*r.Oldest), console.Time(*r.Newest)
		}
		table.Row(r.Lease, r.Events, r.Covered, oldest, newest, r.Left)
	}
	if err := table.Write(p.out, "there are no leases of processor "+cfg.Processor+" yet: nothing was sent"); err != nil {
		return err
	}
	p.describe(v)
	if time.Since(from) > cfg.EventTTL {
		p.say(f.format, "events older than %s have expired and cannot be sent again", cfg.EventTTL)
	}
	return nil
}

// replayKey sends the stored events of a key again.
func (p *program) replayKey(cmd *cobra.Command, f replayFlags) error {
	return p.operate(cmd, !f.dryRun, long, func(ctx context.Context, _ *config.Relay, o *operator.Operator) error {
		plan, err := o.PlanKeyReplay(ctx, f.key, f.window)
		if err != nil {
			return p.replayKeyAdvice(f.key, err)
		}
		v := replayView{resendView: newResendView(plan.Resend), Key: f.key, Window: f.window.String(), Missing: plan.Missing, DryRun: f.dryRun}
		if f.format != console.FormatJSON {
			p.describe(v)
		}
		if len(plan.Messages) == 0 {
			return console.Advise(fmt.Errorf("the key %s has no stored events: they have expired, or there is no such contact", f.key), "check the id; GET /api/contacts/"+f.key+" shows whether the contact exists")
		}
		if !f.dryRun && len(plan.Missing) == 0 {
			if err := p.confirm(f.yes, "%d events of key %s will be sent again, in order, while a relay may send newer ones.", v.Events, f.key); err != nil {
				return err
			}
			bar := console.NewProgress(p.errOut, "sending", int64(v.Events))
			err := o.SendKey(ctx, plan, bar.Add)
			bar.Done()
			if fault.Is(err, fault.Conflict) {
				return p.replayKeyAdvice(f.key, err)
			}
			if err != nil {
				return err
			}
			v.Done = true
			p.say(f.format, "sent: %d events of key %s", v.Events, f.key)
		}
		if f.format == console.FormatJSON {
			if err := console.JSON(p.out, v); err != nil {
				return err
			}
		}
		if len(plan.Missing) > 0 {
			return invariantError{console.Advise(fmt.Errorf("events are missing in the middle of key %s: sequences %v; nothing was sent", f.key, plan.Missing),
				"they were deleted, or their TTL was changed; consumers must read the contact itself")}
		}
		return nil
	})
}

func (p *program) replayKeyAdvice(key string, err error) error {
	switch {
	case fault.Is(err, fault.Conflict):
		return console.Advise(err, "feedbox parked retry "+key+p.flag()+" sends the parked events in order")
	case fault.Is(err, fault.Invalid):
		return console.Advise(err, "correct the document or delete it; until then consumers can read the contact itself")
	case azure.StatusOf(err) == http.StatusForbidden && !fault.Is(err, fault.Unavailable): // otherwise the account fails over
		return console.Advise(err, "use an identity with Cosmos DB Built-in Data Reader: a relay may not query the data container, but this command must")
	}
	return err
}
