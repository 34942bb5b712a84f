package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"feedbox/application/relay"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

// eventView is the output form of a parked event.
type eventView struct {
	Place    int       `json:"place,omitempty"` // in the queue of its key, from 1
	ID       string    `json:"id"`
	Action   string    `json:"action,omitempty"`
	Sequence int64     `json:"sequence,omitempty"`
	LSN      int64     `json:"lsn,omitempty"`
	Reason   string    `json:"reason"`
	Error    string    `json:"error,omitempty"`
	Attempts int       `json:"attempts"`
	ParkedAt time.Time `json:"parkedAt"`
	Document any       `json:"document,omitempty"`
}

// keyView is a parked key with its queue of events and its skipped events.
type keyView struct {
	gateView
	Line    []eventView   `json:"line"`
	Skipped []skippedView `json:"skipped"`
}

type skippedView struct {
	Event  eventView  `json:"event"`
	Intent intentView `json:"intent"`
}

func (p *program) parkedShowCommand() *cobra.Command {
	var format console.Format
	var limit int
	var documents bool
	cmd := &cobra.Command{
		Use:   "show KEY",
		Short: "Show why a key is parked, and its events",
		Args:  oneArg("the key"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || limit > 1000 {
				return usage(cmd, fmt.Errorf("--limit %d: give a number from 1 to 1000", limit))
			}
			return p.operate(cmd, false, quick, func(ctx context.Context, _ *config.Relay, o *operator.Operator) error {
				v, err := p.readKey(ctx, o, args[0], limit, documents)
				if err != nil {
					return err
				}
				if format == console.FormatJSON {
					return console.JSON(p.out, v)
				}
				return p.showKey(v)
			})
		},
	}
	outputFlag(cmd, &format)
	p.consumerFlag(cmd)
	cmd.Flags().IntVar(&limit, "limit", 20, "number of events to show")
	cmd.Flags().BoolVar(&documents, "documents", false, "show the documents of events, which contain personal data")
	return cmd
}

func (p *program) readKey(ctx context.Context, o *operator.Operator, key string, limit int, documents bool) (keyView, error) {
	parked, err := o.ParkedKey(ctx, key, limit)
	if err != nil {
		return keyView{}, p.notParked(key, err)
	}
	v := keyView{gateView: newGateView(parked.Gate), Line: []eventView{}, Skipped: []skippedView{}}
	for i, e := range parked.Line {
		shown := newEventView(e, documents)
		shown.Place = i + 1
		v.Line = append(v.Line, shown)
	}
	for _, s := range parked.Skipped {
		v.Skipped = append(v.Skipped, skippedView{newEventView(s.Event, documents), intentView(s.Intent)})
	}
	return v, nil
}

func newEventView(e relay.ParkedEvent, document bool) eventView {
	v := eventView{
		ID: e.ID, Action: e.Action, Sequence: e.Sequence, LSN: e.LSN,
		Reason: e.Reason, Error: e.Error, Attempts: e.Attempts, ParkedAt: e.ParkedAt,
	}
	switch {
	case !document:
	case json.Valid(e.Document):
		v.Document = json.RawMessage(e.Document)
	default:
		v.Document = string(e.Document)
	}
	return v
}

func (p *program) showKey(v keyView) error {
	head := console.NewTable()
	head.Row("key", v.Key)
	head.Row("state", v.state())
	head.Row("parked", console.Time(v.ParkedAt)+", "+console.Age(time.Since(v.ParkedAt))+" ago")
	head.Row("reason", v.Reason+" of event "+v.Event)
	head.Row("error", console.Middle(v.Error, 600))
	if v.Intent != nil {
		verb := string(v.Intent.Verb)
		if v.Intent.FromStore {
			verb += " from the store"
		}
		head.Row("pending", fmt.Sprintf("%s by %s at %s: %s", verb, v.Intent.By, console.Time(v.Intent.At), v.Intent.Note))
	}
	if v.Failure != "" {
		head.Row("last try", fmt.Sprintf("%s, attempt %d: %s", console.Time(v.TriedAt), v.Attempts, v.Failure))
	}
	if err := head.Write(p.out, ""); err != nil {
		return err
	}
	p.say(console.FormatTable, "\n%d events parked, the first %d:", v.Events, len(v.Line))
	line := console.NewTable("EVENT", "ACTION", "SEQUENCE", "REASON", "ATTEMPTS")
	var failures []failure
	for _, e := range v.Line {
		line.Row(e.ID, e.Action, e.Sequence, e.Reason, e.Attempts)
		if e.Error != v.Error {
			failures = append(failures, failure{e.ID, e.Error})
		}
	}
	if err := line.Write(p.out, "no parked events"); err != nil {
		return err
	}
	p.sayFailures(console.FormatTable, failures, "")
	for _, e := range v.Line {
		if e.Document != nil {
			p.say(console.FormatTable, "\n%s\n%s", e.ID, e.Document)
		}
	}
	if len(v.Skipped) == 0 {
		return nil
	}
	p.say(console.FormatTable, "\nskipped:")
	skipped := console.NewTable("EVENT", "ACTION", "BY", "AT", "NOTE")
	for _, s := range v.Skipped {
		skipped.Row(s.Event.ID, s.Event.Action, s.Intent.By, console.Time(s.Intent.At), s.Intent.Note)
	}
	return skipped.Write(p.out, "")
}
