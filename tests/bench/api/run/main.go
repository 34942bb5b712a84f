// Command run measures the contacts API beside a bare azcosmos loop and prints
// the result as text or, with -json, as one JSON object.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"

	"feedbox/tests/bench/api"
)

func main() { os.Exit(run()) }

func run() int {
	var c api.Config
	flag.IntVar(&c.Clients, "clients", 16, "clients at the same time")
	flag.IntVar(&c.Contacts, "contacts", 256, "contacts that are updated")
	flag.IntVar(&c.Turns, "turns", 5, "turns of each side")
	flag.DurationVar(&c.Turn, "turn", 0, "length of a turn (default 2s)")
	asJSON := flag.Bool("json", false, "print JSON")
	profile := flag.String("cpuprofile", "", "write a CPU profile of both sides to this file")
	flag.Parse()
	if *profile != "" {
		file, err := os.Create(*profile)
		if err == nil {
			err = pprof.StartCPUProfile(file)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		defer pprof.StopCPUProfile()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	report, err := api.Measure(ctx, c, func(done, all int) { fmt.Fprintf(os.Stderr, "\rturn %d of %d", done, all) })
	fmt.Fprintln(os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if *asJSON {
		_ = json.NewEncoder(os.Stdout).Encode(report)
		return 0
	}
	fmt.Println(report)
	return 0
}
