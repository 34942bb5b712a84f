package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"

	"feedbox/tests/bench/measure"
)

// event is one message of the process of a stage.
type event struct {
	Step    string          `json:"step,omitempty"`
	Figure  *measure.Figure `json:"figure,omitempty"`
	Failure string          `json:"failure,omitempty"`
	Done    bool            `json:"done,omitempty"` // the last one
}

// events is a measure.Sink that writes events.
type events struct {
	mu  sync.Mutex // guards out, because figures and steps are concurrent
	out *json.Encoder
}

func (e *events) tell(one event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	_ = e.out.Encode(one) // fails if the reader is gone, which kills the process
}

func (e *events) Step(what string)        { e.tell(event{Step: what}) }
func (e *events) Figure(f measure.Figure) { e.tell(event{Figure: &f}) }

// runStage is the main function of a stage's process: it measures and writes events.
func runStage(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench stage", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "")
	growth := flags.Bool("growth", false, "")
	profile := flags.String("profile", "", "prefix of the profiles' names")
	if err := flags.Parse(args); err != nil {
		return usageError(err.Error())
	}
	found, err := stagesOf(flags.Arg(0))
	if err != nil || len(found) != 1 {
		return usageError("stage takes the name of one stage")
	}
	sink := &events{out: json.NewEncoder(out)}
	r := measure.NewRun(found[0].name, sink)
	r.Quick = *quick
	work := found[0].measure
	if *growth {
		work = found[0].growth
	}
	heap := watchHeap(ctx)
	err = profiled(*profile, func() error { return work(ctx, r) })
	addMemory(r, heap())
	if err = errors.Join(err, r.Err()); err != nil {
		sink.tell(event{Failure: err.Error()})
	}
	sink.tell(event{Done: true})
	return nil
}

// profiled writes a processor profile of work, and a heap profile after it, unless
// the prefix of their names is empty.
func profiled(prefix string, work func() error) error {
	if prefix == "" {
		return work()
	}
	file, err := os.Create(prefix + ".cpu.pprof")
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return errors.Join(err, file.Close())
	}
	worked := work()
	pprof.StopCPUProfile()
	heap, err := os.Create(prefix + ".heap.pprof")
	if err != nil {
		return errors.Join(worked, err, file.Close())
	}
	return errors.Join(worked, file.Close(), pprof.Lookup("allocs").WriteTo(heap, 0), heap.Close())
}

// heapPeriod is the interval between two measurements of the heap.
const heapPeriod = 100 * time.Millisecond

// watchHeap returns a function that stops watching and returns the largest heap seen,
// in bytes.
func watchHeap(ctx context.Context) func() int64 {
	ctx, cancel := context.WithCancel(ctx)
	largest := make(chan int64)
	go func() {
		ticker := time.NewTicker(heapPeriod)
		defer ticker.Stop()
		most := measure.Heap()
		for {
			select {
			case <-ticker.C:
				most = max(most, measure.Heap())
			case <-ctx.Done():
				largest <- most
				return
			}
		}
	}()
	return func() int64 { cancel(); return <-largest }
}

// addMemory adds figures of the memory of the stage's process: emulators, clients and load
// together.
func addMemory(r *measure.Run, largestHeap int64) {
	runtime.GC()
	r.Add(
		measure.Cost("memory, resident at most", megabytes(measure.PeakRSS()), "MB").Noting("of the stage's whole process"),
		measure.Cost("memory, heap at most", megabytes(largestHeap), "MB").Noting("garbage included"),
		measure.Cost("memory, heap in the end", megabytes(measure.Heap()), "MB").Noting("after a collection"),
	)
}

func megabytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// readEvents calls each for the events of a stage until the stage is done. It returns an
// error if the output ends before.
func readEvents(in io.Reader, each func(event)) error {
	decoder := json.NewDecoder(in)
	for {
		var one event
		switch err := decoder.Decode(&one); {
		case errors.Is(err, io.EOF):
			return errors.New("the stage ended before it was done")
		case err != nil:
			return fmt.Errorf("read the events of the stage: %w", err)
		case one.Done:
			return nil
		}
		each(one)
	}
}
