package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

func (p *program) parkedCommand() *cobra.Command {
	cmd := group("parked", "Show, retry, correct and skip parked events", p.parkedLsCommand(), p.parkedShowCommand(), p.parkedRetryCommand(), p.parkedSkipCommand(), p.parkedEditCommand(), p.parkedAdoptCommand())
	cmd.Long = `Show, retry, correct and skip parked events.

If the broker refuses an event permanently, the relay parks it together with the later
events of its key, to keep their order. These commands store a request; the relay that
owns the range of the key sends the parked events in order and then reopens the key. A
key that was parked because the broker was unavailable is retried automatically.

With --consumer they act on the events that a consumer has parked in this store. The
consumer handles them: it must be running.`
	return cmd
}

func (p *program) consumerFlag(cmd *cobra.Command) {
	filledFlag(cmd, &p.consumer, "consumer", "act on the parked events of this consumer")
}

// flag returns the given flags of consumerFlag and ofContainer for a command in an advice.
func (p *program) flag() (given string) {
	if p.consumer != "" {
		given = " --consumer " + p.consumer
	}
	if p.container != "" {
		given += " --container " + p.container
	}
	return given
}

// party returns the process that carries out an intent.
func (p *program) party() string {
	if p.consumer != "" {
		return "consumer"
	}
	return "relay"
}

func (p *program) parkedLsCommand() *cobra.Command {
	var format console.Format
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the parked keys, the oldest first",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.operate(cmd, false, quick, func(ctx context.Context, _ *config.Relay, o *operator.Operator) error {
				gates, err := o.Parked.Gates(ctx)
				if err != nil {
					return err
				}
				none := ""
				if len(gates) == 0 {
					none = p.noParked(ctx, o)
				}
				if none != "" && p.consumer != "" && format == console.FormatJSON {
					p.say(format, "%s", none)
				}
				views := make([]gateView, len(gates))
				table := console.NewTable("KEY", "EVENTS", "REASON", "PARKED", "STATE")
				var failures []failure
				for i, g := range gates {
					v := newGateView(g)
					views[i] = v
					table.Row(v.Key, v.Events, v.Reason, console.Age(time.Since(v.ParkedAt))+" ago", v.state())
					failures = append(failures, failure{v.Key, cmp.Or(v.Failure, v.Error)})
				}
				if err := p.write(format, views, table, none); err != nil {
					return err
				}
				p.sayFailures(format, failures, "correct the cause, then feedbox parked retry KEY"+p.flag())
				return nil
			})
		},
	}
	outputFlag(cmd, &format)
	p.consumerFlag(cmd)
	return cmd
}

// noParked names the consumers with parked keys: the events of those wait although no relay has parked a key,
// and the name of a consumer may be misspelled. No record distinguishes an unknown consumer from one without
// parked keys.
func (p *program) noParked(ctx context.Context, o *operator.Operator) string {
	text := "no key is parked"
	if p.consumer != "" {
		text += " by consumer " + p.consumer + ", or there is no such consumer: no record distinguishes them"
	}
	if all, err := o.ConsumerKeys(ctx); err == nil && len(all) > 0 {
		names := make([]string, len(all))
		for i, one := range all {
			names[i] = one.Consumer
		}
		if p.consumer == "" {
			text += " by a relay"
		}
		text += "; consumers with parked keys: " + strings.Join(names, ", ")
	}
	return text
}

// gateView is the output form of a parked key.
type gateView struct {
	Key      string      `json:"key"`
	Events   int64       `json:"events"`
	Reason   string      `json:"reason"`
	Event    string      `json:"event"`
	Error    string      `json:"error,omitempty"`
	ParkedAt time.Time   `json:"parkedAt"`
	Intent   *intentView `json:"intent,omitempty"`
	Auto     bool        `json:"auto"`
	Attempts int         `json:"attempts"`
	Failure  string      `json:"lastFailure,omitempty"`
	TriedAt  time.Time   `json:"triedAt,omitzero"`
}

type intentView struct {
	Verb  relay.Verb `json:"verb"`
	Event string     `json:"event,omitempty"`
	By    string     `json:"by,omitempty"`
	Note  string     `json:"note,omitempty"`
	At    time.Time  `json:"at"`

	FromStore bool `json:"fromStore,omitempty"`
}

func newGateView(g relay.Gate) gateView {
	return gateView{
		Key: g.Key, Events: g.Events, Reason: g.Closing.Reason, Event: g.Closing.Event, Error: g.Closing.Error,
		ParkedAt: g.Closing.At, Auto: g.Closing.Auto, Intent: (*intentView)(g.Intent),
		Attempts: g.Attempts, Failure: g.Error, TriedAt: g.TriedAt,
	}
}

// state describes the key in a word or two.
func (g gateView) state() string {
	switch {
	case g.Intent != nil:
		return string(g.Intent.Verb) + " pending"
	case g.Auto:
		return "retried automatically"
	case g.Failure != "":
		return "refused again"
	}
	return "waiting"
}

// notParked replaces the error about a key without a gate by one with advice.
func (p *program) notParked(key string, err error) error {
	if fault.Is(err, fault.NotFound) {
		return console.Advise(fmt.Errorf("the key %s is not parked", key), "feedbox parked ls"+p.flag()+" lists the parked keys")
	}
	return err
}
