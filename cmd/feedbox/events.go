package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"feedbox/domain/fault"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

// eventsView is the output form of a page of events.
type eventsView struct {
	Events       []listedView `json:"events"`
	Examined     int          `json:"examined"`
	Back         time.Time    `json:"back,omitzero"`
	Continuation string       `json:"continuation,omitempty"`
	Omitted      []string     `json:"omitted,omitempty"`
	Cut          []string     `json:"cut,omitempty"`
}

type listedView struct {
	ID          string          `json:"id"`
	Key         string          `json:"key"`
	Action      string          `json:"action"`
	Sequence    int64           `json:"sequence,omitempty"`
	State       operator.Status `json:"state"`
	CommittedAt time.Time       `json:"committedAt,omitzero"`
	ParkedAt    time.Time       `json:"parkedAt,omitzero"`
	DeadAt      time.Time       `json:"deadAt,omitzero"`
	Consumer    string          `json:"consumer,omitempty"`
	Letter      string          `json:"letter,omitempty"`
	Error       string          `json:"error,omitempty"`
}

const maxEventsLimit = 500

func (p *program) eventsCommand() *cobra.Command {
	var format console.Format
	var f operator.EventFilter
	var state, from, until string
	cmd := &cobra.Command{
		Use:   "events",
		Short: "List the stored events, the newest first",
		Long: `List the stored events of all keys, the newest first.

STATE is sent if a checkpoint proves it, and unknown if nothing proves a state.
Waiting events are after the checkpoint. Dead events are the dead letters of the
consumers; feedbox deadletters acts on them. A page examines at most 1000 events; the
command prints how to continue. Actions and states have no index: give a time or a
key if few events match. Events that have expired are not listed.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.State = operator.Status(state)
			if f.Limit < 1 || f.Limit > maxEventsLimit {
				return usage(cmd, fmt.Errorf("--limit %d: give a number from 1 to %d", f.Limit, maxEventsLimit))
			}
			for text, into := range map[*string]*time.Time{&from: &f.From, &until: &f.Until} {
				if *text == "" {
					continue
				}
				var err error
				if *into, err = parseWhen(*text); err != nil {
					return usage(cmd, err)
				}
			}
			if !f.From.IsZero() && !f.Until.IsZero() && !f.From.Before(f.Until) {
				return usage(cmd, fmt.Errorf("--from %s is not before --until %s: exchange them; of two ages the longer one is earlier", from, until))
			}
			return p.operate(cmd, f.State == operator.StatusDead, quick, func(ctx context.Context, _ *config.Relay, o *operator.Operator) error {
				measured, err := o.Measure(ctx)
				if err != nil {
					return err
				}
				page, err := o.Events(ctx, measured, f)
				if fault.Is(err, fault.Invalid) {
					return usage(cmd, err)
				}
				if err != nil {
					return err
				}
				return p.showEvents(cmd, format, page)
			})
		},
	}
	outputFlag(cmd, &format)
	flags := cmd.Flags()
	filledFlag(cmd, &f.Key, "key", "only events of this key")
	filledFlag(cmd, &f.ID, "id", "only the event of this id")
	filledFlag(cmd, &f.Action, "action", "only events of this action")
	filledFlag(cmd, &state, "state", "only events in this state: waiting, sent, parked, skipped, dead or unknown")
	flags.StringVar(&f.Management, "servicebus-admin", "", "URL of the management API, for an emulator")
	filledFlag(cmd, &from, "from", "only events since this time or age, such as 2h")
	filledFlag(cmd, &until, "until", "only events before this time or age")
	flags.IntVar(&f.Limit, "limit", 50, "about the number of events of a page")
	flags.StringVar(&f.Continuation, "after", "", "continue after the page that printed this")
	return cmd
}

func (p *program) showEvents(cmd *cobra.Command, format console.Format, page operator.EventPage) error {
	v := eventsView{Events: make([]listedView, len(page.Events)), Examined: page.Examined, Back: page.Back.UTC(), Continuation: page.Continuation, Omitted: page.Omitted, Cut: page.Cut}
	table := console.NewTable("STATE", "TIME", "ACTION", "KEY", "SEQUENCE", "EVENT")
	table.Paint = p.paintStatus(0)
	var failures []failure
	for i, e := range page.Events {
		one := listedView{e.ID, e.Key, e.Action, e.Sequence, e.Status, e.StoredAt.UTC(), e.ParkedAt.UTC(), e.DeadAt.UTC(), e.Consumer, e.Letter, e.Trouble}
		v.Events[i] = one
		sequence := any("–")
		if one.Sequence > 0 {
			sequence = one.Sequence
		}
		table.Row(one.State, cmp.Or(console.Time(e.At()), "–"), cmp.Or(one.Action, "–"), cmp.Or(one.Key, "–"), sequence, one.ID)
		failures = append(failures, failure{one.ID, one.Error})
	}
	empty := "no event matches"
	if page.Continuation != "" {
		empty = fmt.Sprintf("none of these %d events matches", page.Examined)
	}
	if err := p.write(format, v, table, empty); err != nil {
		return err
	}
	p.sayFailures(format, failures, "")
	for _, consumer := range page.Omitted {
		p.say(format, "consumer %s has more dead letters: only its oldest ones are listed", consumer)
	}
	for _, key := range page.Cut {
		p.say(format, "key %s has more parked events: only its first ones are listed; feedbox parked show %s --limit 1000%s", key, key, p.flag())
	}
	if page.Continuation == "" || format == console.FormatJSON {
		return nil
	}
	p.say(format, "\n%d events examined, back to %s\nnext: %s", page.Examined, console.Time(page.Back), p.continued(cmd, page.Continuation))
	return nil
}

// quoted returns a text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// continued returns the command line of the next page.
func (p *program) continued(cmd *cobra.Command, continuation string) string {
	line := []string{cmd.CommandPath()}
	for _, name := range []string{"key", "id", "action", "state", "from", "until", "limit", "servicebus-admin"} {
		if f := cmd.Flags().Lookup(name); f.Changed {
			line = append(line, "--"+name, quoted(f.Value.String()))
		}
	}
	return strings.Join(line, " ") + p.flag() + " --after " + continuation
}
