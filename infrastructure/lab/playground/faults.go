package playground

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/cosmosemu"
)

// Fault is one kind of harm that can be done.
type Fault struct {
	// Name is a word for command lines, and Title the words of a button.
	Name, Title string
	// Words say what happens, and Undo what ends it.
	Words, Undo string
	// Lasts is for how long by default, and Bound the longest. Both are 0 for a fault that
	// is over at once.
	Lasts, Bound time.Duration

	begin func(ctx context.Context, e *Engine) (what string, undo func(ctx context.Context) error, err error)
}

// Faults are all there are, in the order in which --script does them by default.
var Faults = []Fault{
	{
		Name: "kill", Title: "Kill a relay", Lasts: 5 * time.Second, Bound: time.Minute, begin: killRelay,
		Words: "kill -9 of a relay's process. The others take its ranges over when its leases expire.",
		Undo:  "another relay is started in its place",
	},
	{
		Name: "freeze", Title: "Freeze a relay", Lasts: 8 * time.Second, Bound: time.Minute, begin: freezeRelay,
		Words: "SIGSTOP of a relay's process: it stands still in the middle of what it does, longer than its leases last.",
		Undo:  "SIGCONT: it goes on, and finds out what it missed",
	},
	{
		Name: "cut", Title: "Cut a relay's network", Lasts: 8 * time.Second, Bound: time.Minute, begin: cutRelay,
		Words: "Nothing passes between a relay and the two services, in either direction; nobody is told.",
		Undo:  "the network heals, and what was on its way arrives",
	},
	{
		Name: "throttle", Title: "Throttle the database", Lasts: 8 * time.Second, Bound: time.Minute, begin: throttle,
		Words: "Cosmos DB answers three calls in four with 429, to the API and to relays.",
		Undo:  "all calls are served again",
	},
	{
		Name: "fill", Title: "Fill the topic", Lasts: 8 * time.Second, Bound: 45 * time.Second, begin: fillTopic,
		Words: "The topic's quota is used up: Service Bus takes no message.",
		Undo:  "there is room again",
	},
	{
		Name: "split", Title: "Split a range", Lasts: 10 * time.Second, Bound: 5 * time.Minute, begin: splitRange,
		Words: "The widest physical partition of the data container becomes two.",
		Undo:  "the two are merged",
	},
	{
		Name: "poison", Title: "Poison a contact", Lasts: 10 * time.Second, Bound: 2 * time.Minute, begin: poisonContact,
		Words: "Service Bus refuses the messages of one contact as too large. They are parked, in order; the other contacts go on.",
		Undo:  "they are accepted again, and what is parked is sent in its order",
	},
	{
		Name: "clock", Title: "Move the clock", begin: moveClock,
		Words: "The clocks of both services jump ahead by a minute: locks of sessions and messages expire.",
	},
}

// FaultNamed finds a fault of Faults.
func FaultNamed(name string) (*Fault, bool) {
	i := slices.IndexFunc(Faults, func(f Fault) bool { return f.Name == name })
	if i < 0 {
		return nil, false
	}
	return &Faults[i], true
}

var errNoRelay = errors.New("no relay is left that is well: wait until a fault is over")

// victim chooses a relay that is well and gives it a condition.
func (e *Engine) victim(becomes Condition) (*relay, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var well []*relay
	for _, r := range e.relays {
		if r.condition == Running && !r.ended() {
			well = append(well, r)
		}
	}
	if len(well) == 0 {
		return nil, errNoRelay
	}
	r := well[e.rnd.IntN(len(well))]
	r.condition = becomes
	return r, nil
}

// recovers gives a relay back its good condition.
func (e *Engine) recovers(r *relay) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r.condition = Running
}

func killRelay(_ context.Context, e *Engine) (string, func(context.Context) error, error) {
	r, err := e.victim(Killed)
	if err != nil {
		return "", nil, err
	}
	r.kill()
	return fmt.Sprintf("%s (process %d) killed", r.name, r.cmd.Process.Pid), func(context.Context) error { return e.replace(r) }, nil
}

func freezeRelay(_ context.Context, e *Engine) (string, func(context.Context) error, error) {
	r, err := e.victim(Frozen)
	if err != nil {
		return "", nil, err
	}
	if err := freeze(r.cmd); err != nil {
		e.recovers(r)
		return "", nil, err
	}
	return fmt.Sprintf("%s (process %d) stands still", r.name, r.cmd.Process.Pid), func(context.Context) error {
		defer e.recovers(r)
		return thaw(r.cmd)
	}, nil
}

func cutRelay(_ context.Context, e *Engine) (string, func(context.Context) error, error) {
	r, err := e.victim(Cut)
	if err != nil {
		return "", nil, err
	}
	r.network(true)
	return r.name + " is cut off", func(context.Context) error {
		r.network(false)
		e.recovers(r)
		return nil
	}, nil
}

func throttle(_ context.Context, e *Engine) (string, func(context.Context) error, error) {
	const retryAfter = 100 * time.Millisecond
	remove := e.o.Cosmos.Control(cosmosemu.OpAny, func(c *cosmosemu.Call) *cosmosemu.Fault {
		if observing(c) || e.choose(4) == 0 {
			return nil
		}
		f := cosmosemu.Throttled(retryAfter)
		return &f
	})
	return "three calls in four are answered with 429", undo(remove), nil
}

func undo(remove func()) func(context.Context) error {
	return func(context.Context) error {
		remove()
		return nil
	}
}

func fillTopic(_ context.Context, e *Engine) (string, func(context.Context) error, error) {
	if err := e.o.Bus.SetQuota(e.o.Names.Topic, 1); err != nil {
		return "", nil, err
	}
	return "the topic is full", func(context.Context) error { return e.o.Bus.SetQuota(e.o.Names.Topic, 0) }, nil
}

func splitRange(_ context.Context, e *Engine) (string, func(context.Context) error, error) {
	n := &e.o.Names
	before, err := e.o.Cosmos.PartitionKeyRanges(n.Database, n.Container)
	if err != nil {
		return "", nil, err
	}
	widest := slices.MaxFunc(before, func(a, b cosmosemu.PartitionKeyRange) int { return width(a) - width(b) })
	if err := e.o.Cosmos.Split(n.Database, n.Container, widest.ID); err != nil {
		return "", nil, err
	}
	after, err := e.o.Cosmos.PartitionKeyRanges(n.Database, n.Container)
	if err != nil {
		return "", nil, err
	}
	var children []string
	for _, r := range after {
		if slices.Contains(r.Parents, widest.ID) {
			children = append(children, r.ID)
		}
	}
	if len(children) != 2 {
		return "", nil, fmt.Errorf("range %s has become %d ranges, not two", widest.ID, len(children))
	}
	return fmt.Sprintf("range %s has become %s and %s", widest.ID, children[0], children[1]), func(context.Context) error {
		return e.o.Cosmos.Merge(n.Database, n.Container, children[0], children[1])
	}, nil
}

// width compares ranges, by the first digits of their bounds.
func width(r cosmosemu.PartitionKeyRange) int {
	const digits, end = 8, 0x40000000 // no effective partition key of a hash is above
	bound := func(text string) int {
		n, _ := strconv.ParseUint((text + strings.Repeat("0", digits))[:digits], 16, 64) // the emulator writes hexadecimal
		return min(int(n), end)
	}
	return bound(r.MaxExclusive) - bound(r.MinInclusive)
}

// poisoned is what the broker answers for a contact that is poisoned.
var poisoned = busemu.Fault{Err: &busemu.Error{Condition: "amqp:link:message-size-exceeded", Description: "The playground wants this message to be too large."}}

func poisonContact(ctx context.Context, e *Engine) (string, func(context.Context) error, error) {
	pass := int64(e.choose(8))
	var calls atomic.Int64
	var contact atomic.Pointer[string]
	found := make(chan struct{})
	remove := e.o.Bus.Control(busemu.OpSend, func(c *busemu.Call) *busemu.Fault {
		if len(c.Sessions) == 0 || calls.Add(1) <= pass {
			return nil
		}
		if contact.CompareAndSwap(nil, &c.Sessions[0]) {
			close(found)
		}
		if !slices.Contains(c.Sessions, *contact.Load()) {
			return nil
		}
		f := poisoned
		return &f
	})
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	select {
	case <-found:
	case <-ctx.Done():
		remove()
		return "", nil, errors.New("no event was sent for a while: wait until relays send again")
	}
	key := *contact.Load()
	return "contact " + key + " is poisoned", func(context.Context) error {
		remove()
		e.mu.Lock()
		defer e.mu.Unlock()
		e.healing[key] = time.Now().Add(healed)
		return nil
	}, nil
}

const (
	// healed is for how long after a contact is healed what is parked of it is looked for: a
	// relay may be about to park.
	healed = 10 * time.Second
	// clockPause is the shortest time between two moves of the clock.
	clockPause = 15 * time.Second
)

func moveClock(_ context.Context, e *Engine) (string, func(context.Context) error, error) {
	const ahead = time.Minute
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.relays {
		if r.condition == Frozen || r.condition == Cut {
			return "", nil, fmt.Errorf("%s is %s: what it sends later would be older than the broker remembers, which RELIABILITY.md names as a limit; wait until it is back", r.name, r.condition)
		}
	}
	if time.Since(e.clockMoved) < clockPause {
		return "", nil, errors.New("the clock was moved a moment ago: wait a quarter of a minute, so that no event expires unjudged")
	}
	e.clockMoved = time.Now()
	e.o.Cosmos.Advance(ahead)
	e.o.Bus.Advance(ahead)
	return "the clocks of both services jumped ahead by a minute", nil, nil
}
