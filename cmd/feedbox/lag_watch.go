package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

// watchLag measures until ctx ends. On a terminal it redraws one table; elsewhere it
// appends a table per measurement, or with JSON a line.
func (p *program) watchLag(ctx context.Context, cfg *config.Relay, o *operator.Operator, f lagFlags) error {
	tick := time.NewTicker(f.interval)
	defer tick.Stop()
	var before *lagView
	for n := 1; ; n++ {
		v, err := measureLag(ctx, o)
		switch {
		case ctx.Err() != nil:
			return nil // an interrupt is the normal end
		case err != nil && before == nil:
			return err
		case err != nil: // perhaps temporary
			_, _ = fmt.Fprintf(p.errOut, "%s  %s\n", time.Now().UTC().Format(time.TimeOnly), console.Middle(err.Error(), 160))
		default:
			v.remember(before)
			if err := p.showTick(v, before, cfg, f); err != nil {
				return err
			}
			before = &v
		}
		if n == f.count {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *program) showTick(v lagView, before *lagView, cfg *config.Relay, f lagFlags) error {
	if f.format == console.FormatJSON {
		return console.JSONLine(p.out, v)
	}
	title := fmt.Sprintf("%d behind, oldest %s", v.Behind, console.Age(seconds(v.Oldest)))
	unknown := slices.Clone(v.Uncovered)
	if v.Unknown > 0 {
		unknown = append(unknown, fmt.Sprintf("%d ranges", v.Unknown))
	}
	switch {
	case v.Unknown == len(v.Ranges): // also without leases
		title = "lag not known"
	case len(unknown) > 0:
		title = fmt.Sprintf("at least %s, not known in %s", title, strings.Join(unknown, ", "))
	}
	title = v.At.Format(time.TimeOnly) + "  " + title
	if before != nil {
		title += fmt.Sprintf(", %.0f documents/s (events and contacts)", v.rate(before))
	}
	screen := console.IsTerminal(p.out)
	if screen {
		title = console.Clear + title
	}
	_, err := fmt.Fprintln(p.out, title)
	err = errors.Join(err, p.showLag(v, cfg))
	if !screen {
		_, _ = fmt.Fprintln(p.out)
	}
	return err
}

// remember adds what an earlier measurement knew of ranges whose lag is unknown now.
func (v *lagView) remember(before *lagView) {
	if before == nil {
		return
	}
	for i := range v.Ranges {
		r := &v.Ranges[i]
		at := slices.IndexFunc(before.Ranges, func(b rangeView) bool { return b.Lease == r.Lease })
		switch {
		case r.Known || at < 0:
		case before.Ranges[at].Known:
			r.LastKnown = &knownLag{At: before.At, Behind: *before.Ranges[at].Behind, Oldest: *before.Ranges[at].Oldest}
		default:
			r.LastKnown = before.Ranges[at].LastKnown
		}
	}
}

// rate returns the documents handled per second since another measurement, over the
// leases that both contain.
func (v *lagView) rate(before *lagView) float64 {
	handled := map[string]int64{}
	for _, r := range before.Ranges {
		handled[r.Lease] = r.Handled
	}
	var n int64
	for _, r := range v.Ranges {
		if was, known := handled[r.Lease]; known {
			n += max(0, r.Handled-was)
		}
	}
	return float64(n) / v.At.Sub(before.At).Seconds()
}
