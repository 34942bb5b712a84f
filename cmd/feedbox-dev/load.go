package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/lab/workload"
	"feedbox/infrastructure/process/config"
)

// loading has the flags of load.
type loading struct {
	place

	api, history               string
	contacts, changes, writers int
	rate                       float64
	seed                       int64
}

func loadCommand(out io.Writer) *cobra.Command {
	l := &loading{}
	cmd := &cobra.Command{
		Use:   "load --history FILE",
		Short: "Change contacts through the API and record the outcomes",
		Long: `Change contacts through the API with several concurrent clients and record the
outcomes for feedbox-dev verify. You can kill and restart processes meanwhile: the
outcome of a request without a reply is unknown.

The API is that of the running feedbox-dev, or the one of --api.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return l.run(cmd.Context(), out) },
	}
	flags := cmd.Flags()
	l.register(flags)
	flags.StringVar(&l.api, "api", "", "address of another contacts API, such as http://127.0.0.1:8080")
	flags.StringVar(&l.history, "history", "", "file to write, one JSON object per request")
	flags.IntVar(&l.contacts, "contacts", 100, "contacts to create")
	flags.IntVar(&l.changes, "changes", 3000, "requests to send, creations included")
	flags.IntVar(&l.writers, "writers", 8, "concurrent clients, at most one per contact")
	flags.Float64Var(&l.rate, "rate", 100, "requests per second; 0 is unlimited")
	flags.Int64Var(&l.seed, "seed", 1, "seed of the choice of contacts and changes")
	return cmd
}

// requestTimeout bounds a request. After it the outcome is unknown.
const requestTimeout = 10 * time.Second

func (l *loading) run(ctx context.Context, out io.Writer) error {
	if err := l.validate(); err != nil {
		return usageError{err}
	}
	if l.api == "" {
		e, err := l.find()
		if err != nil {
			return err
		}
		if l.api = e.API; l.api == "" {
			return usageError{errors.New("there is no API: feedbox-dev emulators does not run one; give an address with --api")}
		}
	}
	history, err := createRecords(l.history)
	if err != nil {
		return err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: l.writers}
	defer transport.CloseIdleConnections()
	loadCtx, end := context.WithCancel(ctx)
	defer end()
	dialed := &dialing{next: transport, refused: end}
	load := &workload.Load{
		Base: l.api, Client: &http.Client{Transport: dialed, Timeout: requestTimeout},
		Contacts: l.contacts, Changes: l.changes, Writers: min(l.writers, l.contacts), Rate: l.rate, Seed: l.seed,
		Record: func(o workload.Outcome) { history.add(o) },
	}
	_, _ = fmt.Fprintln(out, l.intent())
	began := time.Now()
	err = errors.Join(load.Run(loadCtx), history.close())
	acked, unknown, done := load.History()
	unknowns := load.LostCreates()
	for _, n := range unknown {
		unknowns += n
	}
	if err == nil && ctx.Err() == nil && loadCtx.Err() != nil {
		return fmt.Errorf("%s refuses connections: start the API (feedbox-dev, feedbox api), or give its address with --api", l.api)
	}
	if err == nil && done == 0 && load.Refused() == 0 {
		err = fmt.Errorf("none of %d requests to %s was answered: start the API (feedbox-dev, feedbox api), or give its address with --api", l.changes, l.api)
	}
	if err == nil && done == 0 && unknowns == 0 && load.Refused() > 0 && ctx.Err() == nil {
		err = fmt.Errorf("nothing was changed: all of %d requests to %s were rejected (429); try again with a lower --rate, or raise the limits of the API", load.Refused(), l.api)
	}
	_, _ = fmt.Fprintf(out, "%d changes of %d contacts in %s: %d of unknown outcome, %d rejected\n",
		done, len(acked), time.Since(began).Round(time.Millisecond), unknowns, load.Refused())
	return err
}

// dialing calls refused if a connection is refused before any reply arrived: then no API runs at the
// address. Later refusals are part of the test, in which the API may be restarted.
type dialing struct {
	next    http.RoundTripper
	refused func()
	replied atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (d *dialing) RoundTrip(r *http.Request) (*http.Response, error) {
	reply, err := d.next.RoundTrip(r)
	if err == nil {
		d.replied.Store(true)
	} else if !d.replied.Load() && errors.Is(err, syscall.ECONNREFUSED) {
		d.refused()
	}
	return reply, err
}

// intent describes the load that is about to start.
func (l *loading) intent() string {
	text := fmt.Sprintf("%d requests go to %s", l.changes, l.api)
	if l.rate > 0 {
		text += fmt.Sprintf(", %g a second: about %s", l.rate, time.Duration(float64(l.changes)/l.rate*float64(time.Second)).Round(time.Second))
	}
	return text
}

func (l *loading) validate() error {
	switch {
	case l.api != "" && l.readyFile != "":
		return errors.New("--api and --ready-file exclude each other: leave one out")
	case l.api != "" && !config.IsHTTP(l.api):
		return fmt.Errorf("--api %q: give a URL such as http://127.0.0.1:8080", l.api)
	case l.history == "":
		return errors.New("--history is missing: give the file to write")
	case l.contacts < 1 || l.changes < l.contacts || l.writers < 1 || !(l.rate >= 0): // so that NaN is refused
		return fmt.Errorf("--contacts %d, --changes %d, --writers %d, --rate %v: contacts and writers are at least 1, changes at least as many as contacts, the rate is not negative",
			l.contacts, l.changes, l.writers, l.rate)
	}
	return nil
}
