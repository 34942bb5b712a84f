package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"feedbox/tests/bench/result"
)

// Exit statuses.
const (
	exitOK = iota
	exitFailed
	exitUsage
	exitRegressed
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

func run(ctx context.Context, args []string, out, progress io.Writer) int {
	var err error
	switch {
	case len(args) > 0 && args[0] == "compare":
		return compare(args[1:], out, progress)
	case len(args) > 0 && args[0] == "stage":
		err = runStage(ctx, args[1:], out)
	default:
		err = measureAll(ctx, args, out, progress)
	}
	var usage usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(progress, "bench: %v\n", err)
		return exitUsage
	default:
		fmt.Fprintf(progress, "bench: %v\n", err)
		return exitFailed
	}
}

// usageError is a mistake in the command line.
type usageError string

func (e usageError) Error() string { return string(e) }

func compare(args []string, out, progress io.Writer) int {
	if len(args) != 2 {
		fmt.Fprintln(progress, "bench: compare takes two files: go run ./tests/bench compare OLD.json NEW.json")
		return exitUsage
	}
	var files [2]*result.File
	for i, path := range args {
		var err error
		if files[i], err = result.Read(path); err != nil {
			fmt.Fprintf(progress, "bench: %v\n", err)
			return exitFailed
		}
	}
	c, err := result.Compare(files[0], files[1])
	if err == nil {
		err = c.Table(out)
	}
	switch {
	case err != nil:
		fmt.Fprintf(progress, "bench: %v\n", err)
		return exitFailed
	case c.Regressed():
		return exitRegressed
	default:
		return exitOK
	}
}

// settings has the values of the command line.
type settings struct {
	stages        []stage
	runs          int
	quick, growth bool
	json, profile string
}

func parse(args []string, progress io.Writer) (s settings, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(progress)
	only := flags.String("only", "", "measure these stages: "+strings.Join(stageNames(), ","))
	flags.IntVar(&s.runs, "runs", 1, "how often each stage is measured")
	flags.StringVar(&s.json, "json", "", "write the results to this file")
	flags.BoolVar(&s.quick, "quick", false, "a few seconds a stage, coarse figures")
	flags.BoolVar(&s.growth, "growth", false, "measure costs at growing sizes instead")
	flags.StringVar(&s.profile, "profile", "", "write profiles of each stage into this directory")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return s, err
	case err != nil:
		return s, usageError(err.Error())
	}
	if flags.NArg() > 0 {
		return s, usageError(fmt.Sprintf("%q is neither a flag nor compare", flags.Arg(0)))
	}
	if s.runs < 1 {
		return s, usageError("-runs must be at least 1")
	}
	s.stages, err = stagesOf(*only)
	return s, err
}
