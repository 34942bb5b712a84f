package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"feedbox/infrastructure/lab/playground"
	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/process/console"
)

// playScript injects the faults in sequence and prints their effects.
func (p *playing) playScript(ctx context.Context, engine *playground.Engine, out io.Writer) error {
	plan, err := playground.ParsePlan(p.faults)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "faults: %d, in about %s\n", len(plan), (playground.Takes(plan, p.pause) + 5*time.Second).Round(time.Second))
	err = engine.Play(ctx, plan, p.pause)
	state := engine.State()
	if written := summarise(out, &state); written != nil {
		return errors.Join(err, written)
	}
	switch {
	case !state.Verdict.Kept():
		return errors.Join(errBroken, err)
	case err != nil:
		return err
	case state.Acked == 0: // otherwise a script that observed nothing would pass
		return fmt.Errorf("nothing is proven: no change was acknowledged (%d of unknown outcome, %d rejected); see the log above for the cause, or give a longer --pause", state.Unknown, state.Rejected)
	case state.Arrived == 0:
		return fmt.Errorf("nothing is proven: %d changes were acknowledged, and none of their events arrived; see the log above for the cause", state.Acked)
	}
	return nil
}

// summarise prints the effect of each fault, and the verdict.
func summarise(out io.Writer, s *playground.State) error {
	_, _ = fmt.Fprintln(out)
	table := console.NewTable("FAULT", "LASTED", "LATE FOR", "P50", "P99")
	for i := range s.Effects {
		e := &s.Effects[i]
		lasted := "at once"
		if d := e.Ended.Sub(e.Began); d > 0 {
			lasted = d.Round(100 * time.Millisecond).String()
		}
		late := "never"
		if e.Settled > 0 {
			late = e.Settled.Round(100 * time.Millisecond).String()
		}
		row := func(of func(l playground.Latency) time.Duration) string {
			return short(of(e.Before)) + ", " + short(of(e.During)) + ", " + short(of(e.After))
		}
		table.Row(e.Fault.Title, lasted, late,
			row(func(l playground.Latency) time.Duration { return l.P50 }), row(func(l playground.Latency) time.Duration { return l.P99 }))
	}
	if err := table.Write(out, "no fault was injected"); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, `
P50 and P99 are latencies from the change to the consumer before, during and after the
fault. LATE FOR is the time from the start of the fault until no event was in flight for
more than %s.

`, playground.Late)
	v := &s.Verdict
	verdict := console.NewTable("PROMISE", "BROKEN", "TEXT")
	for _, p := range verify.Tallies(v.Broken) {
		verdict.Row(p.ID, fmt.Sprint(p.Broken), p.Text)
	}
	if err := verdict.Write(out, ""); err != nil {
		return err
	}
	for _, breach := range v.Breaches {
		_, _ = fmt.Fprintln(out, console.Clean(breach))
	}
	_, err := fmt.Fprintf(out, "\nacknowledged %d, arrived %d, lost %d, doubled %d, out of order %d\n%d changes of unknown outcome, %d rejected; %d duplicates dropped by the broker; seed %d\n",
		s.Acked, s.Arrived, s.Lost(), s.Doubled(), s.Disordered(), s.Unknown, s.Rejected, s.Dropped, s.Seed)
	return err
}

// short formats a latency with few digits.
func short(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
