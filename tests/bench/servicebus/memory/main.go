// Command memory fills a Service Bus emulator on disk, in a separate process, with messages,
// and then empties it. It prints the memory of the process meanwhile. Linux only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

// settings has the values of the command line.
type settings struct {
	messages, sessions, size int
	subscriptions            int
	senders, receivers       int
}

func main() {
	var s settings
	flag.IntVar(&s.messages, "messages", 1_000_000, "messages to send, each with an id that is remembered")
	flag.IntVar(&s.sessions, "sessions", 20_000, "sessions that they belong to, in turn")
	flag.IntVar(&s.size, "size", 512, "bytes of a body")
	flag.IntVar(&s.subscriptions, "subscriptions", 1, "subscriptions with sessions, each of which gets and is emptied of all messages")
	flag.IntVar(&s.senders, "senders", 4, "batches of 100 in flight")
	flag.IntVar(&s.receivers, "receivers", 32, "sessions that are emptied at a time")
	serving := flag.String("serve", "", "the process of the emulator: store in this directory")
	flag.Parse()
	if s.messages%(10*s.sessions) != 0 || s.messages%(10*inBatch) != 0 {
		fmt.Fprintln(os.Stderr, "memory: -messages must be a multiple of 1,000 and of ten times -sessions")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	if *serving != "" {
		err = serve(*serving, s)
	} else {
		err = run(ctx, s)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) (err error) {
	dir, err := os.MkdirTemp("", "feedbox-bench-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := start(ctx, dir, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }() // p is the latest process
	fmt.Printf("%d messages of %d bytes, %d sessions, %d subscriptions, ids remembered for ten minutes\n\n", s.messages, s.size, s.sessions, s.subscriptions)
	if err := p.report("started", "heap"); err != nil {
		return err
	}
	began := time.Now()
	if err := fill(ctx, p, s); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	rate(s.messages, "sent", began)
	if err := p.report("full, collected", "collect"); err != nil {
		return err
	}
	if p, err = restart(ctx, p, dir, s); err != nil {
		return err
	}
	began = time.Now()
	for i := range s.subscriptions {
		if err := empty(ctx, p, s, subscription(i)); err != nil {
			return fmt.Errorf("empty: %w", err)
		}
	}
	rate(s.messages*s.subscriptions, "received", began)
	if err := p.report("emptied", "heap"); err != nil {
		return err
	}
	return p.report("collected", "collect")
}

// restart stops the process and starts another one on its store.
func restart(ctx context.Context, p *process, dir string, s settings) (*process, error) {
	began := time.Now()
	if err := p.stop(); err != nil {
		return p, err
	}
	stopped := time.Now()
	next, err := start(ctx, dir, s)
	if err != nil {
		return p, err
	}
	fmt.Printf("stopped in %v, started in %v\n", stopped.Sub(began).Round(time.Millisecond), time.Since(stopped).Round(time.Millisecond))
	if err := next.report("started again", "heap"); err != nil {
		return next, err
	}
	return next, next.report("collected", "collect")
}

func rate(n int, what string, began time.Time) {
	d := time.Since(began)
	fmt.Printf("%s in %v, %.0f/s\n", what, d.Round(time.Second), float64(n)/d.Seconds())
}
