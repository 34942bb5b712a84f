// Command relay measures how fast a backlog of events goes from the change feed
// to the broker, beside its two floors in the same run: reading the same feed and
// doing nothing with it, and sending the same batches without a feed.
//
//	go run ./tests/bench/relay [-contacts 20000] [-events 10] [-size 512] [-partitions 4] [-pack] [-disk] [-json]
//
// Clients, emulators and relay share one process and the machine's cores; the
// figures are ratios to the floors first and events per second second.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"
)

type settings struct {
	Contacts, Events, Size, Partitions int
	Pack, Disk                         bool
}

func main() {
	var s settings
	flag.IntVar(&s.Contacts, "contacts", 20_000, "contacts, each a partition key and a session")
	flag.IntVar(&s.Events, "events", 10, "events of each contact")
	flag.IntVar(&s.Size, "size", 512, "bytes of each event's data")
	flag.IntVar(&s.Partitions, "partitions", 4, "physical partitions of the container")
	flag.BoolVar(&s.Pack, "pack", false, "put several keys into one batch")
	flag.BoolVar(&s.Disk, "disk", false, "keep the emulators' data on disk, with fsync before every acknowledgement")
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Parse()
	if err := run(context.Background(), s, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// figures are what one run measured, in events per second.
type figures struct {
	settings
	Cores                     int
	Read, Send, Relay         float64
	RatioToSlowerFloor        float64
	CPUPerEvent               time.Duration // of the whole process, while relaying
	Accepted, DuplicatesAtEnd int64
	Fill, TookRead, TookRelay time.Duration
}

func run(ctx context.Context, s settings, asJSON bool) error {
	w, err := newWorld(s)
	if err != nil {
		return err
	}
	defer w.close()
	f := figures{settings: s, Cores: runtime.GOMAXPROCS(0)}
	total := float64(s.Contacts * s.Events)

	progress("filling the store with %d events of %d contacts", s.Contacts*s.Events, s.Contacts)
	if f.Fill, err = timed(func() error { return w.fill(ctx) }); err != nil {
		return err
	}
	progress("floor: reading the feed (%s to fill)", f.Fill.Round(time.Millisecond))
	if f.TookRead, err = timed(func() error { return w.readOnly(ctx) }); err != nil {
		return err
	}
	f.Read = total / f.TookRead.Seconds()
	progress("floor: sending the same batches")
	took, err := timed(func() error { return w.sendOnly(ctx) })
	if err != nil {
		return err
	}
	f.Send = total / took.Seconds()
	progress("relaying")
	before := cpu()
	if f.TookRelay, err = timed(func() error { return w.relay(ctx) }); err != nil {
		return err
	}
	f.CPUPerEvent = (cpu() - before) / time.Duration(total)
	f.Relay = total / f.TookRelay.Seconds()
	f.RatioToSlowerFloor = f.Relay / min(f.Read, f.Send)
	counters, err := w.bus.Counters(topic)
	if err != nil {
		return err
	}
	f.Accepted, f.DuplicatesAtEnd = counters.Accepted, counters.Duplicates
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(f)
	}
	fmt.Printf("packed %v, on disk %v, %d cores\n", s.Pack, s.Disk, f.Cores)
	fmt.Printf("  feed read alone  %9.0f events/s\n  send alone       %9.0f events/s\n  relay            %9.0f events/s  %.2f of the slower floor, %s CPU an event\n",
		f.Read, f.Send, f.Relay, f.RatioToSlowerFloor, f.CPUPerEvent)
	fmt.Printf("  the broker dropped %d duplicates\n", f.DuplicatesAtEnd)
	return nil
}

func timed(what func() error) (time.Duration, error) {
	start := time.Now()
	err := what()
	return time.Since(start), err
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
