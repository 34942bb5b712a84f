// Command cosmos measures the Cosmos DB emulator's server CPU per operation beside
// a net/http server that stores nothing, in one run:
//
//	go run ./tests/bench/cosmos [-rounds 5] [-seconds 3] [-clients 16] [-http]
//
// Each server is a process of its own, so that its CPU time is its own; the load is
// azcosmos with 1 KB documents. Rounds alternate between the servers, because the
// rate of a shared machine swings; CPU time per operation is the steadier figure.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 5, "rounds per phase")
	seconds := flag.Float64("seconds", 3, "length of a phase")
	clients := flag.Int("clients", 16, "goroutines")
	plain := flag.Bool("http", false, "without TLS")
	only := flag.String("phase", "", "run one phase only")
	dir := flag.String("data-dir", "", "keep the emulator's data here, with fsync")
	profile := flag.String("cpuprofile", "", "write the emulator's CPU profile here")
	startup := flag.Bool("startup", false, "measure starting and idling instead")
	megabytes := flag.Int("reopen", 0, "measure reopening this many MB in -data-dir instead")
	child := flag.String("serve", "", "internal: be this server")
	flag.Parse()
	if *child != "" {
		if err := serve(*child, !*plain, *dir, *profile); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ctx := context.Background()
	if *startup || *megabytes > 0 {
		var err error
		if *startup {
			err = startups(ctx, !*plain)
		} else {
			err = reopen(ctx, *megabytes, *dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	load := &load{length: time.Duration(*seconds * float64(time.Second)), clients: *clients}
	if err := run(ctx, load, *rounds, *only, !*plain, *dir, *profile); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// result is one phase of one round on one server.
type result struct {
	operations int
	elapsed    time.Duration
	cpu        time.Duration
}

func (r result) cpuPerOperation() float64 {
	return float64(r.cpu.Microseconds()) / float64(max(r.operations, 1))
}
func (r result) rate() float64 { return float64(r.operations) / r.elapsed.Seconds() }

func run(ctx context.Context, l *load, rounds int, only string, secure bool, dir, profile string) error {
	emulator, err := startChild(ctx, "emulator", secure, dir, profile)
	if err != nil {
		return err
	}
	defer emulator.stop()
	floor, err := startChild(ctx, "floor", secure, "", "")
	if err != nil {
		return err
	}
	defer floor.stop()
	fmt.Printf("%-8s %28s %28s %8s\n", "", "emulator", "net/http floor", "ratio")
	fmt.Printf("%-8s %14s %13s %14s %13s\n", "phase", "CPU/op µs", "op/s", "CPU/op µs", "op/s")
	for _, p := range phases {
		if only != "" && p.name != only {
			continue
		}
		var ours, theirs []result
		for range rounds {
			for _, side := range []struct {
				server *child
				into   *[]result
			}{{emulator, &ours}, {floor, &theirs}} {
				r, err := l.phase(ctx, side.server, p)
				if err != nil {
					return fmt.Errorf("%s on %s: %w", p.name, side.server.name, err)
				}
				*side.into = append(*side.into, r)
			}
		}
		a, b := median(ours, result.cpuPerOperation), median(theirs, result.cpuPerOperation)
		fmt.Printf("%-8s %14.1f %13.0f %14.1f %13.0f %8.2f\n", p.name, a, median(ours, result.rate), b, median(theirs, result.rate), a/b)
	}
	return nil
}

func median(results []result, of func(result) float64) float64 {
	values := make([]float64, 0, len(results))
	for _, r := range results {
		values = append(values, of(r))
	}
	slices.Sort(values)
	return values[len(values)/2]
}
