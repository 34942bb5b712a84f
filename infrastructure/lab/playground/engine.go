package playground

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"sync"
	"time"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/lab/recorder"
)

// Names are what the load goes to.
type Names struct{ Database, Container, Parked, Topic, Subscription string }

// Options are what Start needs; those with a default say so.
type Options struct {
	Cosmos *cosmosemu.Server
	Bus    *busemu.Server
	API    string // base URL of the contacts API
	Names  Names
	// Relay makes the command of a relay process that reaches the emulators at these
	// addresses. The process is to end when its standard input does.
	Relay func(name, cosmos, bus string) *exec.Cmd
	// RetryParked asks for what is parked of a contact to be sent; false: nothing is parked.
	RetryParked func(ctx context.Context, contact string) (bool, error)
	// Owned tells how many ranges each relay owns. Default: nobody is asked.
	Owned func(ctx context.Context) (map[string]int, error)

	// Relays is how many are kept running; default 3.
	Relays int
	// Rate is how many changes a second are made; default 50.
	Rate float64
	// Round is for how long each round of load goes on; default 15 s.
	Round time.Duration
	// Patience is how long events may take when no fault is on; then they are lost.
	// Default 30 s.
	Patience time.Duration
	// Seed of all choices; default a random one.
	Seed uint64
	// Logged is told each line of the log as it is written. Default: nobody is.
	Logged func(Entry)
	// Tamper stands between broker and judge, for tests of the verdict: it returns what is to
	// be taken for arrived instead of a message. Default: the message. It is called for one
	// message after the other.
	Tamper func(recorder.Arrival) []recorder.Arrival
}

// Engine is a playground that runs. Its methods are safe for concurrent use.
type Engine struct {
	o       Options
	began   time.Time
	judge   *judge
	meter   meter
	witness *recorder.Witness

	processes sync.WaitGroup // one for each relay process
	running   sync.WaitGroup // load and ticks
	cancel    context.CancelFunc
	stopLoad  context.CancelFunc
	loadOver  chan struct{}
	closing   sync.Once
	closed    error

	acting sync.Mutex // held while a fault begins or is undone

	mu         sync.Mutex // guards what follows
	rnd        *rand.Rand
	relays     []*relay
	started    int // relays so far
	active     map[string]*active
	effects    []*Effect
	done       int // faults so far
	log        []Entry
	clockMoved time.Time
	restless   time.Time            // when events were late, or a fault was on, last
	healing    map[string]time.Time // contacts of which something may be parked, until when
	owned      map[string]int
	parked     int
	turnedAway int
}

// Entry is a line of the log.
type Entry struct {
	At    time.Time
	Words string
	Bad   bool
}

// Start starts relays, consumer and load. Close ends them.
func Start(ctx context.Context, options *Options) (*Engine, error) {
	o := *options
	if o.Relays == 0 {
		o.Relays = 3
	}
	if o.Rate == 0 {
		o.Rate = 50
	}
	if o.Round == 0 {
		o.Round = 15 * time.Second
	}
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
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
		if err := e.addRelay(); err != nil {
			close(e.loadOver)
			return nil, errors.Join(err, e.Close())
		}
	}
	sessions := 2 * contactsOf(o.Rate)
	if e.witness, err = recorder.Start(ctx, o.Bus.ConnectionString(), o.Names.Topic, o.Names.Subscription, sessions, e.saw); err != nil {
		close(e.loadOver)
		return nil, errors.Join(err, e.Close())
	}
	e.restless = time.Now()
	e.note(false, "%d relays started; %g changes a second; seed %d", o.Relays, o.Rate, o.Seed)
	e.running.Go(func() {
		defer close(e.loadOver)
		e.makeLoad(load)
	})
	e.running.Go(func() { e.tick(life) })
	return e, nil
}

// Close undoes all faults and ends everything. It may be called more than once.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		e.stopLoad()
		e.cancel()
		e.running.Wait()
		if e.witness != nil {
			e.witness.Stop()
		}
		ctx, cancel := context.WithTimeout(context.Background(), drainTimeout) //nolint:forbidigo // the caller's may have ended
		defer cancel()
		e.closed = errors.Join(e.endAll(ctx), e.endRelays(ctx))
		e.processes.Wait()
	})
	return e.closed
}

// Finish undoes all faults, ends the load and waits until everything is judged.
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

// addRelay starts another relay.
func (e *Engine) addRelay() error {
	e.mu.Lock()
	e.started++
	name := fmt.Sprintf("relay-%d", e.started)
	e.mu.Unlock()
	r, err := e.startRelay(name)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.relays = append(e.relays, r)
	return nil
}

// replace starts a relay in the place of one that has ended.
func (e *Engine) replace(gone *relay) error {
	e.mu.Lock()
	e.started++
	name := fmt.Sprintf("relay-%d", e.started)
	e.mu.Unlock()
	r, err := e.startRelay(name)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, other := range e.relays {
		if other == gone {
			e.relays[i] = r
		}
	}
	return nil
}

// note writes a line of the log.
func (e *Engine) note(bad bool, format string, args ...any) {
	const lines = 200
	entry := Entry{At: time.Now(), Words: fmt.Sprintf(format, args...), Bad: bad}
	e.mu.Lock()
	if e.log = append(e.log, entry); len(e.log) > lines {
		e.log = e.log[len(e.log)-lines:]
	}
	e.mu.Unlock()
	if e.o.Logged != nil {
		e.o.Logged(entry)
	}
}

// choose returns a number below n.
func (e *Engine) choose(n int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rnd.IntN(n)
}
