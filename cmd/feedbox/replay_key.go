package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"feedbox/domain/fault"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/azure"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

// replayKey sends the stored events of a key again.
func (p *program) replayKey(cmd *cobra.Command, f replayFlags) error {
	return p.operate(cmd, !f.dryRun, long, func(ctx context.Context, _ *config.Relay, o *operator.Operator) error {
		plan, err := o.PlanKeyReplay(ctx, f.key, f.window)
		if err != nil {
			return replayKeyAdvice(f.key, err)
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

func replayKeyAdvice(key string, err error) error {
	switch {
	case fault.Is(err, fault.Conflict):
		return console.Advise(err, "feedbox parked retry "+key+" sends the parked events in order")
	case fault.Is(err, fault.Invalid):
		return console.Advise(err, "correct the document or delete it; until then consumers can read the contact itself")
	case azure.StatusOf(err) == http.StatusForbidden && !fault.Is(err, fault.Unavailable): // otherwise the account fails over
		return console.Advise(err, "use an identity with Cosmos DB Built-in Data Reader: a relay may not query the data container, but this command must")
	}
	return err
}
