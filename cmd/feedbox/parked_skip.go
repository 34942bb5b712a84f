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
		Short: "Skip the first parked event of a key permanently",
		Args:  oneArg("the key"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var faults []error
			if event == "" {
				faults = append(faults, errors.New("--event is missing: give the id of the first event of feedbox parked show "+args[0]))
			}
			if strings.TrimSpace(note) == "" {
				faults = append(faults, errors.New("--note is missing: give the reason to record"))
			}
			if err := errors.Join(faults...); err != nil {
				return usage(cmd, err)
			}
			return p.operate(cmd, false, long, func(ctx context.Context, _ *config.Relay, o *operator.Operator) error {
				if err := checkFirst(ctx, o, args[0], event); err != nil {
					return err
				}
				if err := p.confirm(yes, "Event %s of key %s will never be sent. Its document is kept in the record.", event, args[0]); err != nil {
					return err
				}
				intent := relay.Intent{Verb: relay.VerbSkip, Event: event, By: p.operatorName(by), Note: note}
				return p.request(ctx, o, args[0], intent, wait, format)
			})
		},
	}
	outputFlag(cmd, &format)
	intentFlags(cmd, &by, &note, &wait)
	cmd.Flags().StringVar(&event, "event", "", "id of the first parked event of the key")
	yesFlag(cmd, &yes)
	return cmd
}

// checkFirst refuses early what a relay would refuse later: an event that is not the first.
func checkFirst(ctx context.Context, o *operator.Operator, key, event string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errNoAnswer)
	defer cancel()
	switch err := o.FirstInLine(ctx, key, event); {
	case fault.Is(err, fault.Conflict):
		return console.Advise(err, "feedbox parked show "+key)
	default:
		return notParked(key, err)
	}
}
