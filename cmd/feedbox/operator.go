package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"feedbox/domain/fault"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/azure"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
	"feedbox/infrastructure/wiring"
)

// answerTimeout bounds a quick command, and each request of a long one.
var answerTimeout = 30 * time.Second

var errNoAnswer = fmt.Errorf("no answer within %s", answerTimeout)

// duration is the time limit of a command.
type duration bool

const (
	quick duration = false // answerTimeout
	long  duration = true  // no limit, until it is done or interrupted
)

// operate loads the relay's configuration, runs do with an operator and closes the operator.
// Faults of the broker's variables are ignored unless needsBroker.
func (p *program) operate(cmd *cobra.Command, needsBroker bool, limit duration, do func(ctx context.Context, cfg *config.Relay, o *operator.Operator) error) error {
	cfg, err := config.LoadRelay(p.environ)
	if !needsBroker {
		err = config.WithoutBroker(err)
	}
	if err == nil {
		cfg, err = p.chosen(cmd, cfg)
	}
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if limit == quick {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, answerTimeout, errNoAnswer)
		defer cancel()
	}
	o, err := wiring.Operator(cfg, wiring.Params{Log: slog.New(slog.DiscardHandler), Version: console.Version()})
	if err != nil {
		return err
	}
	if p.consumer != "" {
		err = o.OfConsumer(p.consumer)
	}
	if err == nil {
		err = do(ctx, cfg, o)
	}
	return advise(errors.Join(err, o.Close(ctx)))
}

// ofContainer adds the choice of a container to a command, or to all below it.
func (p *program) ofContainer(cmd *cobra.Command) *cobra.Command {
	cmd.PersistentFlags().Var((*filled)(&p.container), "container", "one of FEEDBOX_RELAY_CONTAINERS (default FEEDBOX_COSMOS_CONTAINER)")
	return cmd
}

// chosen returns the configuration for the chosen container. It names the others if none was chosen,
// because the answer does not cover them.
func (p *program) chosen(cmd *cobra.Command, cfg *config.Relay) (*config.Relay, error) {
	all := cfg.Containers()
	one, err := cfg.Of(p.container)
	if err != nil {
		return nil, usage(cmd, fmt.Errorf("--container: %w", err))
	}
	if p.container == "" && len(all) > 1 {
		var others []string
		for _, other := range all[1:] {
			others = append(others, other.Cosmos.Container)
		}
		_, _ = fmt.Fprintf(p.errOut, "container %s; not of %s (--container)\n", one.Cosmos.Container, strings.Join(others, ", "))
		p.container = one.Cosmos.Container // in advices: the environment of their reader may have another list
	}
	return one, nil
}

// advise adds a next step to an error that has none.
func advise(err error) error {
	if err == nil || console.NextOf(err) != "" || errors.Is(err, errReported) || errors.Is(err, console.ErrNotAsked) || errors.Is(err, console.ErrDeclined) {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	status := azure.StatusOf(err)
	throttled := fault.Is(err, fault.Throttled) || status == http.StatusTooManyRequests
	if status != 0 {
		err = &shortened{text: azure.Brief(err), err: err}
	}
	if throttled {
		return console.Advise(err, "try again in a moment, or give the account more request units")
	}
	return console.Advise(err, "feedbox doctor checks the environment and prints fixes")
}

// shortened replaces the text of an error.
type shortened struct {
	text string
	err  error
}

func (s *shortened) Error() string { return s.text }
func (s *shortened) Unwrap() error { return s.err }

// write writes a result in the given format; empty is printed instead of an empty table.
func (p *program) write(f console.Format, value any, table *console.Table, empty string) error {
	if f == console.FormatJSON {
		return console.JSON(p.out, value)
	}
	return table.Write(p.out, empty)
}

// say writes a line for people. With JSON it goes to standard error, because standard
// output holds the result only.
func (p *program) say(f console.Format, format string, args ...any) {
	w := p.out
	if f == console.FormatJSON {
		w = p.errOut
	}
	if _, err := fmt.Fprintln(w, console.Plain(fmt.Sprintf(format, args...))); err != nil && w == p.out {
		p.unwritten = fmt.Errorf("the output is incomplete: %w", err)
	}
}

// failure is an error of a lease, a key or an event.
type failure struct{ of, text string }

// sayFailures writes each error once, below the names that have it. Errors are not shortened,
// because the cause is at their end.
func (p *program) sayFailures(f console.Format, failures []failure, next string) {
	if f == console.FormatJSON {
		return
	}
	names := map[string][]string{}
	var texts []string
	for _, one := range failures {
		if one.text != "" && names[one.text] == nil {
			texts = append(texts, one.text)
		}
		names[one.text] = append(names[one.text], one.of)
	}
	for _, text := range texts {
		of := names[text]
		title := strings.Join(of[:min(len(of), maxNames)], ", ")
		if more := len(of) - maxNames; more > 0 {
			title += fmt.Sprintf(" and %d more", more)
		}
		p.say(f, "\n%s:\n  %s", strings.Join(console.Wrap(title, console.Width(p.out)-1), "\n"), strings.Join(console.Wrap(console.Clean(text), console.Width(p.out)-2), "\n  "))
		if next != "" {
			p.say(f, "  next: %s", next)
		}
	}
}

// maxNames is the number of names above one error.
const maxNames = 6

// confirm asks the operator to confirm an action that cannot be undone.
func (p *program) confirm(yes bool, format string, args ...any) error {
	return console.Prompt{In: p.in, Out: p.errOut, Yes: yes}.Confirm(fmt.Sprintf(format, args...))
}

// operatorName returns the name to record with a request: that of the flag, else the login
// name, else the user of the process and its host. In a pod without a login these are a
// number and the name of the pod.
func (p *program) operatorName(flag string) string {
	if flag != "" {
		return flag
	}
	if login := cmp.Or(p.variable("USER"), p.variable("LOGNAME"), p.variable("USERNAME")); login != "" {
		return login
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unnamed host"
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username + " on " + host
	}
	return fmt.Sprintf("uid %d on %s", os.Getuid(), host)
}
