package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/spf13/cobra"

	"feedbox/domain/fault"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/azure"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
	"feedbox/infrastructure/wiring"
)

// answerTimeout bounds what an operator waits for one answer.
const answerTimeout = 30 * time.Second

var errNoAnswer = fmt.Errorf("no answer within %s", answerTimeout)

// patient is how long a verb may take as a whole.
type patient bool

const (
	quick patient = false // answerTimeout
	long  patient = true  // until it is done or interrupted
)

// operate loads the relay's configuration, runs do with an operator and closes it.
// The faults of the broker's variables count only if needsBroker.
func (p *program) operate(cmd *cobra.Command, needsBroker bool, how patient, do func(ctx context.Context, cfg *config.Relay, o *operator.Operator) error) error {
	cfg, err := config.LoadRelay(p.environ)
	if !needsBroker {
		err = config.WithoutBroker(err)
	}
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if how == quick {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, answerTimeout, errNoAnswer)
		defer cancel()
	}
	o, err := wiring.Operator(cfg, wiring.Params{Log: slog.New(slog.DiscardHandler), Version: version()})
	if err != nil {
		return err
	}
	err = do(ctx, cfg, o)
	return advise(errors.Join(err, o.Close(ctx)))
}

// advise adds what to do next to a failure that says nothing of it.
func advise(err error) error {
	if err == nil || console.NextOf(err) != "" || errors.Is(err, errReported) || errors.Is(err, console.ErrNotAsked) || errors.Is(err, console.ErrDeclined) {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	if reply, ok := errors.AsType[*azcore.ResponseError](err); ok {
		err = &shortened{text: azure.Brief(err), err: err}
		if reply.StatusCode == http.StatusTooManyRequests {
			return console.Advise(err, "try again in a moment; the account has too few request units")
		}
	}
	if fault.Is(err, fault.Throttled) {
		return console.Advise(err, "try again in a moment; the account has too few request units")
	}
	return console.Advise(err, "feedbox doctor examines the surroundings and says what to change")
}

// shortened is an error with another text.
type shortened struct {
	text string
	err  error
}

func (s *shortened) Error() string { return s.text }
func (s *shortened) Unwrap() error { return s.err }

// write writes a result in the chosen format.
func (p *program) write(f console.Format, value any, table *console.Table, empty string) error {
	if f == console.FormatJSON {
		return console.JSON(p.out, value)
	}
	return table.Write(p.out, empty)
}

// say writes a line for people; with JSON it goes beside the result.
func (p *program) say(f console.Format, format string, args ...any) {
	w := p.out
	if f == console.FormatJSON {
		w = p.errOut
	}
	_, _ = fmt.Fprintf(w, format+"\n", args...) // nobody is left to be told
}

// confirm asks before something is done that cannot be undone.
func (p *program) confirm(yes bool, format string, args ...any) error {
	return console.Prompt{In: p.in, Out: p.errOut, Yes: yes}.Confirm(fmt.Sprintf(format, args...))
}

// who is the name an operator's wish carries: that of the flag, the login's, or what
// the system knows of the process: in a pod that is a number, and the pod's name.
func (p *program) who(flag string) string {
	if flag != "" {
		return flag
	}
	for _, name := range []string{"USER", "LOGNAME", "USERNAME"} {
		for _, pair := range p.environ {
			if value, ok := strings.CutPrefix(pair, name+"="); ok && value != "" {
				return value
			}
		}
	}
	host, err := os.Hostname()
	if err != nil {
		host = "an unnamed host"
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username + " on " + host
	}
	return fmt.Sprintf("uid %d on %s", os.Getuid(), host)
}
