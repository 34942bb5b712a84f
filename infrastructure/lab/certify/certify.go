// Package certify runs the wire scripts, a load with killed relays and the verifier on a Cosmos DB
// account and a Service Bus namespace, and reports which assumptions of UNVERIFIED.md hold there. It is
// feedbox-dev certify without its command line.
//
// A run creates a database and two topics with its own name, and removes them at its end, also if it
// was canceled. Remove and Leftovers are for runs that were killed.
//
// Goroutines: Run starts one for each script that splits a range, one for the other scripts of each
// service, one for the load and those of package recorder, and waits for all of them.
package certify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"sync"
	"time"

	"feedbox/infrastructure/lab/recorder"
	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/lab/wire"
	"feedbox/infrastructure/lab/wire/buswire"
	"feedbox/infrastructure/lab/wire/cosmoswire"
	"feedbox/infrastructure/lab/workload"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// Options are the options of Run. Those without a default are required.
type Options struct {
	Account
	Endpoint, ConnectionString string                         // of Cosmos DB and Service Bus
	Containers                 []azcosmos.ContainerProperties // that the relay needs
	Duration                   time.Duration                  // of the load
	Rate                       float64                        // changes per second
	Seed                       int64                          // of changes, kills and victims
	Budget                     float64                        // US dollars; the run ends before it costs more
	Price                      float64                        // US dollars of 100 RU/s for an hour
	// Patience is how long missing events are awaited after the last message.
	Patience time.Duration
	Version  string // of this program
	Emulator bool   // the account is our emulator, whose control endpoint splits, merges and throttles
	Splits   bool   // scripts may split ranges, which costs 13,000 RU/s each
	// Merge requests a merge of a container's ranges. Default: no script merges on an account.
	Merge func(ctx context.Context, database, container string) error

	// API runs the contacts API on the database of the run while use runs.
	API func(ctx context.Context, name string, use func(ctx context.Context, base string) error) error
	// Relay returns the command of a relay process, which must end when its standard input ends.
	Relay func(name, instance string) *exec.Cmd
	// Documents visits the documents of the run.
	Documents func(ctx context.Context, name string, visit func(raw []byte) error) error
	Scripted  *Meter // sends the requests of Account.Cosmos
	Served    *Meter // sends those of the API
	Log       func(format string, args ...any)
}

// ErrBudget ends a run that would cost more than its budget.
var ErrBudget = errors.New("the budget is used up")

// writers and contacts of the load. A contact has one writer.
const (
	writers  = 8
	contacts = 64
)

// Run runs everything and removes what it has created. The report is complete as far as the run came;
// Ended says why it is not.
func Run(ctx context.Context, o *Options) (r *Report, err error) {
	r = newReport(o)
	ctx, cancel := context.WithTimeoutCause(ctx, o.affordable(), ErrBudget)
	defer cancel()
	defer func() {
		if err != nil {
			r.Ended = err.Error()
		}
		if !errors.Is(err, errNothing) {
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
			defer cancel()
			o.Log("removing the database and the topics %s", r.Run)
			if left := o.Remove(clean, r.Run); left != nil {
				r.LeftBehind = left.Error()
				err = errors.Join(err, left)
			}
		}
		r.finish(o)
	}()
	for _, stage := range []struct {
		does string
		run  func(ctx context.Context, r *Report) error
	}{
		{"creating the database and the topics " + r.Run, func(ctx context.Context, r *Report) error { return o.create(ctx, r.Run, o.Containers) }},
		{fmt.Sprintf("playing %d scripts", len(cosmoswire.Scripts)+len(buswire.Scripts)), o.play},
		{fmt.Sprintf("load for %v, %g changes a second", o.Duration, o.Rate), func(ctx context.Context, r *Report) error {
			return o.API(ctx, r.Run, func(ctx context.Context, base string) error { return o.load(ctx, r, base) })
		}},
	} {
		o.Log("%s", stage.does)
		err := stage.run(ctx, r)
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return r, fmt.Errorf("%s: %w", stage.does, err)
		}
	}
	return r, nil
}

// play plays all scripts: those of a service in turn, those that split a range at the same time, because
// each may take hours.
func (o *Options) play(ctx context.Context, r *Report) error {
	bus, closeBus, err := buswire.Open(o.ConnectionString, r.Run+wireTopic, subscription)
	if err != nil {
		return err
	}
	bus.Emulator, bus.Patient = o.Emulator, o.Duration >= 10*time.Minute
	store := &cosmoswire.Target{Client: o.Cosmos, Database: r.Run, Endpoint: o.Endpoint, Emulator: o.Emulator, Splits: o.Splits, Merge: o.Merge}
	var mu sync.Mutex // guards r.Scripts
	keep := func(outcome wire.Outcome) {
		mu.Lock()
		defer mu.Unlock()
		r.Scripts = append(r.Scripts, outcome)
		o.Log("%s: %s", outcome.Script, outcome.Verdict)
	}
	var playing sync.WaitGroup
	playing.Go(func() {
		for i := 0; i < len(buswire.Scripts) && ctx.Err() == nil; i++ {
			keep(bus.Play(ctx, &buswire.Scripts[i]))
		}
	})
	playing.Go(func() {
		for i := 0; i < len(cosmoswire.Scripts) && ctx.Err() == nil; i++ {
			if s := &cosmoswire.Scripts[i]; s.Splits() {
				playing.Go(func() { keep(store.Play(ctx, s)) })
			} else {
				keep(store.Play(ctx, s))
			}
		}
	})
	playing.Wait()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	_ = closeBus(closing) // everything was settled
	return nil
}

// load changes contacts while relays are killed, and verifies the messages.
func (o *Options) load(ctx context.Context, r *Report, base string) (err error) {
	group := &relays{command: func(instance string) *exec.Cmd { return o.Relay(r.Run, instance) }}
	defer func() {
		err = errors.Join(err, group.stop(ctx))
		r.Load.Kills = group.kills
	}()
	for place := range relayCount {
		if err := group.start(place); err != nil {
			return err
		}
	}
	e := &evidence{ids: map[string]bool{}, last: time.Now()}
	rec, err := recorder.Start(ctx, o.ConnectionString, r.Run, subscription, contacts/2, e.add)
	if err != nil {
		return err
	}
	defer rec.Stop()

	transport := &http.Transport{MaxIdleConnsPerHost: writers}
	defer transport.CloseIdleConnections()
	changing := &workload.Load{
		Base: base, Client: &http.Client{Transport: transport, Timeout: 30 * time.Second}, Seed: o.Seed,
		Contacts: contacts, Writers: writers, Rate: o.Rate, Changes: max(contacts, int(o.Rate*o.Duration.Seconds())),
	}
	killing, endKills := context.WithCancel(ctx)
	killed := make(chan error, 1)
	go func() {
		killed <- group.kill(killing, o.Seed, min(max(o.Duration/30, 2*time.Second), time.Minute), o.Log)
	}()
	err = changing.Run(ctx)
	endKills()
	if err := errors.Join(err, <-killed); err != nil || ctx.Err() != nil {
		return err
	}
	run, err := o.settle(ctx, r.Run, e)
	if err != nil {
		return err
	}
	rec.Stop()
	run.Acked, run.Unknown, r.Load.Changes = changing.History()
	run.LostCreates, run.Messages = changing.LostCreates(), e.messages
	r.Promises = verify.Judge(run, true)
	r.Promises.Redelivered = rec.Redelivered()
	r.Load.Refused, r.Load.Events, r.Load.Messages = changing.Refused(), len(run.Events), len(run.Messages)
	r.Latencies = append(r.Latencies, latencyOf("a change, by the API", changing.Latencies()), latencyOf("an event, from its change to the consumer", e.latencies))
	return nil
}

// evidence collects the messages.
type evidence struct {
	mu        sync.Mutex // guards the fields below
	messages  []verify.Message
	ids       map[string]bool
	latencies []time.Duration
	last      time.Time // when the last message arrived
}

func (e *evidence) add(a recorder.Arrival) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = time.Now()
	e.messages, e.ids[a.ID] = append(e.messages, a.Message), true
	if !a.Created.IsZero() {
		e.latencies = append(e.latencies, e.last.Sub(a.Created))
	}
}

// quiet is how long duplicates are awaited after the last event has arrived.
const quiet = 3 * time.Second

// settle reads the store and waits until all of its events have arrived, or none for the time of Patience.
func (o *Options) settle(ctx context.Context, name string, e *evidence) (verify.Run, error) {
	o.Log("reading the store and waiting for the last events")
	run := verify.Run{Parked: map[string]bool{}}
	if err := o.Documents(ctx, name, func(raw []byte) error {
		d, err := verify.DecodeDocument(raw)
		if err != nil {
			run.Other = append(run.Other, fmt.Sprintf("I1 %v", err))
		}
		run.Add(d)
		return nil
	}); err != nil {
		return run, fmt.Errorf("read the store: %w", err)
	}
	for began := time.Now(); pause(ctx, 500*time.Millisecond); {
		e.mu.Lock()
		missing, still := 0, time.Since(e.last)
		for _, event := range run.Events {
			if !e.ids[event.ID] && !run.Parked[event.ID] {
				missing++
			}
		}
		e.mu.Unlock()
		if missing == 0 && still > quiet || min(still, time.Since(began)) > cmp.Or(o.Patience, time.Minute) {
			break
		}
	}
	return run, ctx.Err()
}
