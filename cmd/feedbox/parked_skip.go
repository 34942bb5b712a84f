package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

func (p *program) parkedSkipCommand() *cobra.Command {
	var format console.Format
	var by, note, event string
	var wait time.Duration
	var yes bool
	cmd := &cobra.Command{
		Use:   "skip KEY --event ID --note WHY",
		Short: "Leave out the first parked event of a key for good and send the others",
		Args:  oneArg("the key"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var faults []error
			if event == "" {
				faults = append(faults, errors.New("--event is missing: the id of the event to leave out, the first of feedbox parked show "+args[0]))
			}
			if strings.TrimSpace(note) == "" {
				faults = append(faults, errors.New("--note is missing: why the event is left out, for the record"))
			}
			if err := errors.Join(faults...); err != nil {
				return usage(cmd, err)
			}
			return p.operate(cmd, false, long, func(ctx context.Context, _ *config.Relay, o *operator.Operator) error {
				if err := isFirst(ctx, o, args[0], event); err != nil {
					return err
				}
				if err := p.confirm(yes, "Event %s of key %s will never be sent. Its document stays in the record.", event, args[0]); err != nil {
					return err
				}
				intent := relay.Intent{Verb: relay.VerbSkip, Event: event, By: p.who(by), Note: note}
				return p.want(ctx, o, args[0], intent, wait, format)
			})
		},
	}
	outputFlag(cmd, &format)
	intentFlags(cmd, &by, &note, &wait)
	cmd.Flags().StringVar(&event, "event", "", "id of the event, which must be the first in line")
	yesFlag(cmd, &yes)
	return cmd
}

// isFirst refuses early what a relay would refuse later.
func isFirst(ctx context.Context, o *operator.Operator, key, event string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errNoAnswer)
	defer cancel()
	switch err := o.FirstInLine(ctx, key, event); {
	case fault.Is(err, fault.Conflict):
		return console.Advise(err, "feedbox parked show "+key)
	default:
		return notParked(key, err)
	}
}
