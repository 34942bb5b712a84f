package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/lab/explorer"
	"feedbox/infrastructure/lab/playground"
	"feedbox/infrastructure/page"
	"feedbox/infrastructure/process/azure"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
	"feedbox/infrastructure/process/telemetry"
)

// The exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	exitBroken  = 3
)

// usageError marks an error of the command line: exit code 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// run executes one command line and returns the exit code: 0 ok, 1 failure,
// 2 wrong usage, input or configuration, 3 a promise of the outbox is broken.
func run(ctx context.Context, args []string, out, errOut io.Writer, environ []string) int {
	opts := &options{}
	root := &cobra.Command{
		Use:           "feedbox-dev",
		Short:         "Run emulators, contacts API, relay and a demo subscriber",
		Version:       console.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return dev(cmd.Context(), opts, out, errOut, environ) },
	}
	opts.register(root.Flags(), true)

	alone := &options{}
	emulatorsOnly := &cobra.Command{
		Use:   "emulators",
		Short: "Run only the Cosmos DB and Service Bus emulators",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return dev(cmd.Context(), alone, out, errOut, environ) },
	}
	alone.register(emulatorsOnly.Flags(), false)

	root.AddCommand(emulatorsOnly, envCommand(out), healthCommand(out), loadCommand(out), poisonCommand(out), relayCommand(errOut, environ), dumpCommand(out), verifyCommand(out), certifyCommand(out, errOut, environ))
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	})
	err := root.ExecuteContext(ctx)
	if err != nil {
		_, _ = fmt.Fprintln(errOut, console.Plain("feedbox-dev: "+err.Error()))
	}
	return exitCode(err)
}

// exitCode returns the exit code for the result of a command line.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errBroken) {
		return exitBroken
	}
	if _, ok := errors.AsType[*config.Error](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitFailure
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && cmd.HasSubCommands() {
		return usageError{fmt.Errorf("%w; see %s --help", console.NoCommand(cmd, args[0]), cmd.CommandPath())}
	}
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no arguments, got %q; see %s --help", cmd.CommandPath(), args, cmd.CommandPath())}
	}
	return nil
}

// dev runs emulators and service until ctx ends.
func dev(ctx context.Context, opts *options, out, errOut io.Writer, environ []string) (err error) {
	if err := opts.validate(); err != nil {
		return usageError{err}
	}
	environ = opts.allowHosts(environ)
	var servers outside
	if err := servers.choose(opts.store, opts.broker, environ); err != nil {
		return usageError{err}
	}
	if err := servers.broker.copies(); err != nil && opts.record {
		return usageError{fmt.Errorf("--record: %w", err)}
	}
	noColour := console.NoColour(environ)
	log, err := telemetry.NewLogger(errOut, &telemetry.LogOptions{Level: opts.logLevel, NoColor: noColour})
	if err != nil {
		return usageError{err}
	}
	style := console.NewStyle(out, noColour)
	_, _ = fmt.Fprintln(out, style.Faint(opts.intent()))
	bound, err := bind(ctx, opts, out)
	if err != nil {
		return err
	}
	emulators, err := startEmulators(ctx, opts, bound, log)
	if err != nil {
		bound.close()
		return err
	}
	defer func() { err = errors.Join(err, emulators.close()) }()
	e := emulators.endpoints(opts.database)
	e.outside = servers
	if opts.alone {
		return emulators.watch(ctx, func(ctx context.Context) error { return announce(ctx, opts, out, style, e) })
	}

	e.API, e.Ops = "http://"+bound.api.Addr().String(), "http://"+bound.ops.Addr().String()
	if bound.page != nil {
		e.Page = "http://" + bound.page.Addr().String()
	}
	seen := newSeenEvents()
	show := func(ctx context.Context, sections ...page.Section) error {
		management, err := azure.Redirect(e.ServiceBusAdmin)
		if err != nil {
			return err
		}
		explorers, err := explorer.New(emulators.cosmos, emulators.bus, management, playground.UserAgent)
		if err != nil {
			return err
		}
		p, err := newPage(environ, bound.page, emulators, &e, seen, log, append(sections, explorers.Sections(!opts.play.on)...)...)
		if err != nil {
			return err
		}
		return servePage(ctx, p, bound.page, func(ctx context.Context) error { return announce(ctx, opts, out, style, e) })
	}
	parts, err := newService(ctx, opts, environ, bound, emulators, e, &printer{out: out, style: style, seen: seen}, log)
	if err != nil {
		bound.close()
		return err
	}
	return emulators.watch(ctx, func(ctx context.Context) error {
		return parts.run(ctx, func(ctx context.Context) error {
			if opts.play.on {
				return opts.play.run(ctx, emulators, &e, out, style, show)
			}
			return show(ctx)
		})
	})
}

// announce prints the endpoints, publishes them in files that are removed at the end, and
// blocks until ctx ends.
func announce(ctx context.Context, opts *options, out io.Writer, style console.Style, e endpoints) error {
	retract, err := e.publish(opts)
	if err != nil {
		return err
	}
	defer retract()
	e.print(out, style, opts)
	<-ctx.Done()
	_, _ = fmt.Fprintln(out, "stopping")
	return nil
}
