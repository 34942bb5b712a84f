// Command run measures the relay only, with a profile and in parts, for work on the relay.
// The whole benchmark is ./tests/bench.
//
//	go run ./tests/bench/relay/run [-quick] [-only PART] [-growth] [-times 3] [-json FILE] [-cpuprofile FILE]
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"strings"
	"syscall"

	"feedbox/infrastructure/process/console"
	"feedbox/tests/bench/measure"
	"feedbox/tests/bench/relay"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func run(ctx context.Context) (err error) {
	quick := flag.Bool("quick", false, "a few seconds: it shows that the stage works")
	only := flag.String("only", "", "parts to measure, by a piece of their names: "+strings.Join(relay.Parts(), ", "))
	growth := flag.Bool("growth", false, "measure the cost of an event as the system grows")
	times := flag.Int("times", 1, "how often; more than once prints the spread")
	file := flag.String("json", "", "write the figures to this file")
	profile := flag.String("cpuprofile", "", "write a CPU profile to this file")
	flag.Parse()
	if *profile != "" {
		out, err := os.Create(*profile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(out); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	stage := relay.Only(*only)
	if *growth {
		stage = relay.OnlyGrowth(*only)
	}
	var runs []*terminal
	for range *times {
		t := &terminal{}
		r := measure.NewRun("relay", t)
		r.Quick = *quick
		if err := stage(ctx, r); err != nil {
			return err
		}
		if err := r.Err(); err != nil {
			return err
		}
		runs = append(runs, t)
	}
	if err := table(runs); err != nil {
		return err
	}
	if *file == "" {
		return nil
	}
	figures := make([][]measure.Figure, len(runs))
	for i := range runs {
		figures[i] = runs[i].figures
	}
	encoded, err := json.MarshalIndent(figures, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(*file, append(encoded, '\n'), 0o644)
}

// terminal prints steps to standard error and collects the figures.
type terminal struct{ figures []measure.Figure }

// Step implements measure.Sink.
func (t *terminal) Step(what string) {
	if console.IsTerminal(os.Stderr) {
		fmt.Fprintf(os.Stderr, "\r\x1b[K%s", what)
	} else {
		fmt.Fprintln(os.Stderr, what)
	}
}

// Figure implements measure.Sink.
func (t *terminal) Figure(f measure.Figure) { t.figures = append(t.figures, f) }

// table prints the figures of the last run with the spread over all runs.
func table(runs []*terminal) error {
	if console.IsTerminal(os.Stderr) {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
	t := console.NewTable("FIGURE", "VALUE", "UNIT", "FLOOR", "RATIO", "CPU µs", "GOAL", "SPREAD", "NOTE")
	for i, f := range runs[len(runs)-1].figures {
		goal, spread := "", ""
		if f.Goal != nil {
			goal = f.Goal.String() + " missed"
			if f.Met() {
				goal = f.Goal.String() + " met"
			}
		}
		if len(runs) > 1 {
			spread = spreadOf(runs, i)
		}
		t.Row(f.Name, short(f.Value), f.Unit, short(f.Floor), short(f.Ratio), short(f.CPU), goal, spread, f.Note)
	}
	return t.Write(os.Stdout, "nothing was measured")
}

// spreadOf returns the spread of the i-th figure over all runs, relative to the midpoint. It
// uses the ratio if the figure has a floor.
func spreadOf(runs []*terminal, i int) string {
	low, high := 0.0, 0.0
	for n, r := range runs {
		v := r.figures[i].Value
		if r.figures[i].Floor != 0 {
			v = r.figures[i].Ratio
		}
		if n == 0 {
			low, high = v, v
		}
		low, high = min(low, v), max(high, v)
	}
	if low+high == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 200*(high-low)/(high+low))
}

func short(v float64) string {
	switch {
	case v == 0:
		return ""
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
