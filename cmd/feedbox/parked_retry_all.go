package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/console"
)

// requestAll stores an intent on all gates, or on those closed for reason.
func (p *program) requestAll(ctx context.Context, o *operator.Operator, reason string, intent relay.Intent, yes bool, wait time.Duration, f console.Format) error {
	bounded, cancel := context.WithTimeoutCause(ctx, answerTimeout, errNoAnswer)
	defer cancel()
	gates, err := o.GatesFor(bounded, reason)
	if err != nil {
		return err
	}
	var events int64
	for _, g := range gates {
		events += g.Events
	}
	switch {
	case len(gates) == 0 && reason != "":
		return console.Advise(fmt.Errorf("no key is parked for the reason %s", reason), "feedbox parked ls shows the reasons")
	case len(gates) > 0:
		if err := p.confirm(yes, "%d keys with %d events are sent, each in its order.", len(gates), events); err != nil {
			return err
		}
	}
	noted := []relay.Gate{}
	views := []gateView{}
	err = o.NoteAll(ctx, gates, intent, func(g relay.Gate) { noted, views = append(noted, g), append(views, newGateView(g)) })
	if err != nil {
		return err
	}
	if f == console.FormatJSON {
		if err := console.JSON(p.out, views); err != nil {
			return err
		}
	}
	p.say(f, "noted: retry of %d keys, %d events wait", len(noted), events)
	return p.awaitAll(ctx, o, noted, wait, f)
}

// awaitAll waits until all gates are open, for limit in total; 0 does not wait.
func (p *program) awaitAll(ctx context.Context, o *operator.Operator, gates []relay.Gate, limit time.Duration, f console.Format) error {
	var faults []error
	for end := time.Now().Add(limit); limit > 0 && len(gates) > 0; gates = gates[1:] {
		if err := p.await(ctx, o, gates[0].Key, gates[0], time.Until(end).Round(time.Millisecond), f); err != nil {
			faults = append(faults, fmt.Errorf("key %s: %w", gates[0].Key, err))
		}
		if !time.Now().Before(end) {
			break
		}
	}
	return errors.Join(faults...)
}

// compareStored prints how the stored events of key differ from the parked ones. It refuses
// early what a relay would refuse later: an event that the store no longer has.
func (p *program) compareStored(ctx context.Context, o *operator.Operator, key string, f console.Format) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errNoAnswer)
	defer cancel()
	if _, err := o.Parked.Gate(ctx, key); err != nil {
		return notParked(key, err)
	}
	c, err := o.CompareParked(ctx, key)
	if err != nil {
		return err
	}
	if len(c.Gone) > 0 {
		return console.Advise(fmt.Errorf("event %s of key %s is no longer in the store: it expired or was deleted", c.Gone[0], key), "feedbox parked retry "+key+" sends the events as they were parked")
	}
	p.say(f, "compared: of the first %d events, %d differ between the store and the parked copy", c.Events, len(c.Differ))
	for _, id := range c.Differ {
		p.say(f, "differs: %s", id)
	}
	return nil
}
