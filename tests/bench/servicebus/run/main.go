// Command run is the Service Bus stage alone:
//
//	go run ./tests/bench/servicebus/run [-quick] [-growth] [-json FILE] [-cpuprofile FILE]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"

	"feedbox/tests/bench/measure"
	"feedbox/tests/bench/servicebus"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	quick := flag.Bool("quick", false, "a few seconds, coarse figures")
	growth := flag.Bool("growth", false, "the cost as sessions grow instead")
	file := flag.String("json", "", "write the figures here too")
	profile := flag.String("cpuprofile", "", "write a CPU profile of all sides here")
	flag.Parse()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	var t table
	r := measure.NewRun("servicebus", &t)
	r.Quick = *quick
	stage := servicebus.Measure
	if *growth {
		stage = servicebus.Growth
	}
	if err := errors.Join(stage(ctx, r), r.Err()); err != nil {
		return err
	}
	if *file == "" {
		return nil
	}
	text, err := json.MarshalIndent(t.figures, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(*file, append(text, '\n'), 0o644)
}

// table prints the figures as they come.
type table struct{ figures []measure.Figure }

func (t *table) Step(what string) { fmt.Fprintln(os.Stderr, what) }

func (t *table) Figure(f measure.Figure) {
	t.figures = append(t.figures, f)
	line := fmt.Sprintf("%-44s %10.1f %-11s", f.Name, f.Value, f.Unit)
	if f.Floor != 0 {
		line += fmt.Sprintf(" floor %10.1f  ratio %5.2f", f.Floor, f.Ratio)
	}
	if f.CPU != 0 {
		line += fmt.Sprintf("  CPU %.1f µs (floor %.1f)", f.CPU, f.FloorCPU)
	}
	if f.Goal != nil {
		line += fmt.Sprintf("  goal %v", f.Goal)
		if !f.Met() {
			line += " MISSED"
		}
	}
	if f.Note != "" {
		line += "  (" + f.Note + ")"
	}
	fmt.Println(line)
}
