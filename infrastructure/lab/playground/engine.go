package playground

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"sync"
	"time"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/lab/recorder"
)

// Names has the names of the containers and entities in use.
type Names struct{ Database, Container, Parked, Topic, Subscription string }

// Options are the options of Start. Those without a default are required.
type Options struct {
	Cosmos *cosmosemu.Server
	Bus    *busemu.Server
	API    string // base URL of the contacts API
	Names  Names
	// Relay returns the command of a relay process that uses the emulators at these
	// addresses. The process must end when its standard input ends. place is below Relays; a
	// relay has the place of the one that it replaces.
	Relay func(place int, name, cosmos, bus string) *exec.Cmd
	// RetryParked requests that the parked events of a contact are sent. It returns false if
	// none are parked.
	RetryParked func(ctx context.Context, contact string) (bool, error)
	// Owned returns the number of ranges of each relay. Default: not shown.
	Owned func(ctx context.Context) (map[string]int, error)

	// Relays is the number of relays kept running; default 3.
	Relays int
	// Rate is the number of changes per second; default 50.
	Rate float64
	// Round is the duration of a round of load; default 15 s.
	Round time.Duration
	// Patience is the time without faults after which missing events count as lost.
	// Default 30 s.
	Patience time.Duration
	// Seed is the seed of all choices; default random.
	Seed uint64
	// Logged is called with each new line of the log. Default: not called.
	Logged func(Entry)
	// Tamper replaces a message by the messages that the judge gets, for tests of the
	// verdict. Default: no change. It is called for one message at a time.
	Tamper func(recorder.Arrival) []recorder.Arrival
}

// Engine is a running playground. Its methods are safe for concurrent use.
type Engine struct {
	o        Options
	began    time.Time
	judge    *judge
	meter    meter
	recorder *recorder.Recorder

	processes sync.WaitGroup // one for each relay process
	running   sync.WaitGroup // load and ticks
	cancel    context.CancelFunc
	stopLoad  context.CancelFunc
	loadOver  chan struct{}
	closing   sync.Once
	closed    error

	acting sync.Mutex // held while a fault is injected or undone

	mu            sync.Mutex // guards the fields below
	rnd           *rand.Rand
	relays        []*relay
	started       int // relays so far
	active        map[string]*active
	effects       []*Effect
	done          int // faults so far
	log           []Entry
	clockMoved    time.Time
	lastDisturbed time.Time            // when an event was last late, or a fault in effect
	healing       map[string]time.Time // contacts that may have parked events, with the time to stop checking
	owned         map[string]int
	parked        int
	rejected      int
}

// Entry is a line of the log.
type Entry struct {
	At   time.Time
	Text string
	Bad  bool
}

// Start starts relays, consumer and load. Call Close to stop them.
func Start(ctx context.Context, options *Options) (*Engine, error) {
	o := *options
	o.Relays = cmp.Or(o.Relays, 3)
	o.Rate = cmp.Or(o.Rate, 50)
	o.Round = cmp.Or(o.Round, 15*time.Second)
	o.Patience = cmp.Or(o.Patience, 30*time.Second)
	o.Seed = cmp.Or(o.Seed, rand.Uint64())
	s, err := openStore(o.Cosmos, &o.Names)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		o: o, began: time.Now(), judge: newJudge(s, o.Patience), loadOver: make(chan struct{}),
		rnd: rand.New(rand.NewPCG(o.Seed, 0)), active: map[string]*active{}, healing: map[string]time.Time{},
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e.cancel = cancel
	load, stopLoad := context.WithCancel(life)
	e.stopLoad = stopLoad
	for range o.Relays {
		if err := e.addRelay(nil); err != nil {
			close(e.loadOver)
			return nil, errors.Join(err, e.Close())
		}
	}
	sessions := 2 * contactsOf(o.Rate)
	if e.recorder, err = recorder.Start(ctx, o.Bus.ConnectionString(), o.Names.Topic, o.Names.Subscription, sessions, e.saw); err != nil {
		close(e.loadOver)
		return nil, errors.Join(err, e.Close())
	}
	e.lastDisturbed = time.Now()
	e.note(false, "%d relays started; %g changes per second; seed %d", o.Relays, o.Rate, o.Seed)
	e.running.Go(func() {
		defer close(e.loadOver)
		e.makeLoad(load)
	})
	e.running.Go(func() { e.tick(life) })
	return e, nil
}

// Close undoes all faults and stops everything. It may be called more than once.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		e.stopLoad()
		e.cancel()
		e.running.Wait()
		if e.recorder != nil {
			e.recorder.Stop()
		}
		ctx, cancel := context.WithTimeout(context.Background(), drainTimeout) //nolint:forbidigo // the caller's may have ended
		defer cancel()
		e.closed = errors.Join(e.endAll(ctx), e.endRelays(ctx))
		e.processes.Wait()
	})
	return e.closed
}

// Finish undoes all faults, ends the load and waits for the final verdict.
func (e *Engine) Finish(ctx context.Context) error {
	err := e.endAll(ctx)
	e.stopLoad()
	select {
	case <-e.loadOver:
	case <-ctx.Done():
		return errors.Join(err, ctx.Err())
	}
	ticks := time.NewTicker(200 * time.Millisecond)
	defer ticks.Stop()
	for e.judge.state().Open > 0 {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
	return err
}

func (e *Engine) endRelays(ctx context.Context) error {
	e.mu.Lock()
	relays := e.relays
	e.relays = nil
	e.mu.Unlock()
	errs := make([]error, len(relays))
	var all sync.WaitGroup
	for i, r := range relays {
		all.Go(func() {
			if !r.ended() {
				errs[i] = r.end(ctx)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// addRelay starts a relay, in place of gone unless that is nil.
func (e *Engine) addRelay(gone *relay) error {
	e.mu.Lock()
	e.started++
	name, place := fmt.Sprintf("relay-%d", e.started), len(e.relays)
	if gone != nil {
		place = slices.Index(e.relays, gone)
	}
	e.mu.Unlock()
	if place < 0 {
		return nil // the playground ends
	}
	r, err := e.startRelay(place, name)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if gone == nil {
		e.relays = append(e.relays, r)
	} else if i := slices.Index(e.relays, gone); i >= 0 {
		e.relays[i] = r
	}
	return nil
}

// note writes a line of the log.
func (e *Engine) note(bad bool, format string, args ...any) {
	const lines = 200
	entry := Entry{At: time.Now(), Text: fmt.Sprintf(format, args...), Bad: bad}
	e.mu.Lock()
	if e.log = append(e.log, entry); len(e.log) > lines {
		e.log = e.log[len(e.log)-lines:]
	}
	e.mu.Unlock()
	if e.o.Logged != nil {
		e.o.Logged(entry)
	}
}

// choose returns a random number below n.
func (e *Engine) choose(n int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rnd.IntN(n)
}
