package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/process/console"
)

func (p *program) parkedCommand() *cobra.Command {
	cmd := group("parked", "See and release the events that the broker refused", p.parkedLsCommand(), p.parkedShowCommand(), p.parkedRetryCommand(), p.parkedSkipCommand())
	cmd.Long = `See and release the events that the broker refused.

An event that is refused for good is parked, and with it the later events of its key,
so that their order stays. The commands only note what is wanted; the relay that owns
the key's range sends the events in their order and then lets the key flow again. A key
that only waited too long for the broker is sent without being asked for.`
	return cmd
}

// gateView is a parked key as it is shown.
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

// state says in a word or two what happens to the key.
func (g gateView) state() string {
	switch {
	case g.Intent != nil:
		return string(g.Intent.Verb) + " wanted"
	case g.Auto:
		return "retried by itself"
	case g.Failure != "":
		return "refused again"
	}
	return "waiting"
}

// notParked says what to do if a key has no gate.
func notParked(key string, err error) error {
	if fault.Is(err, fault.NotFound) {
		return console.Advise(fmt.Errorf("the key %s is not parked", key), "feedbox parked ls lists those that are")
	}
	return err
}
