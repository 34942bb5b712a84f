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

// Fault is one kind of fault that can be injected.
type Fault struct {
	// Name is for command lines, and Title for buttons.
	Name, Title string
	// Description describes the fault, and Undo its end.
	Description, Undo string
	// Lasts is the default duration, and Bound the maximum. Both are 0 for a fault that ends
	// at once.
	Lasts, Bound time.Duration

	begin func(ctx context.Context, e *Engine) (what string, undo func(ctx context.Context) error, err error)
}

// Faults has all faults, in the default order of --script.
var Faults = []Fault{
	{
		Name: "kill", Title: "Kill a relay", Lasts: 5 * time.Second, Bound: time.Minute, begin: killRelay,
		Description: "kill -9 of a relay process. The other relays take over its ranges when its leases expire.",
		Undo:        "another relay is started in its place",
	},
	{
		Name: "freeze", Title: "Freeze a relay", Lasts: 8 * time.Second, Bound: time.Minute, begin: freezeRelay,
		Description: "SIGSTOP of a relay process, for longer than its leases last.",
		Undo:        "SIGCONT: the process continues and finds that it lost its leases",
	},
	{
		Name: "cut", Title: "Cut a relay's network", Lasts: 8 * time.Second, Bound: time.Minute, begin: cutRelay,
		Description: "Traffic between a relay and both services is held in both directions; connections stay open.",
		Undo:        "the network heals, and held traffic arrives",
	},
	{
		Name: "throttle", Title: "Throttle the database", Lasts: 8 * time.Second, Bound: time.Minute, begin: throttle,
		Description: "Cosmos DB answers three of four calls with 429, from the API and from relays.",
		Undo:        "all calls are served again",
	},
	{
		Name: "fill", Title: "Fill the topic", Lasts: 8 * time.Second, Bound: 45 * time.Second, begin: fillTopic,
		Description: "The topic's quota is exceeded: Service Bus refuses all messages.",
		Undo:        "Service Bus accepts messages again",
	},
	{
		Name: "split", Title: "Split a range", Lasts: 10 * time.Second, Bound: 5 * time.Minute, begin: splitRange,
		Description: "The widest physical partition of the data container is split into two.",
		Undo:        "the two are merged",
	},
	{
		Name: "poison", Title: "Poison a contact", Lasts: 10 * time.Second, Bound: 2 * time.Minute, begin: poisonContact,
		Description: "Service Bus refuses the messages of one contact as too large. They are parked in order; other contacts continue.",
		Undo:        "its messages are accepted again, and the parked events are sent in order",
	},
	{
		Name: "clock", Title: "Move the clock", begin: moveClock,
		Description: "The clocks of both services jump ahead by a minute: locks of sessions and messages expire.",
	},
}

// FaultNamed returns the fault with a name.
func FaultNamed(name string) (*Fault, bool) {
	i := slices.IndexFunc(Faults, func(f Fault) bool { return f.Name == name })
	if i < 0 {
		return nil, false
	}
	return &Faults[i], true
}

var errNoRelay = errors.New("no healthy relay is left: wait until a fault ends")

// victim chooses a healthy relay and sets its condition.
func (e *Engine) victim(becomes Condition) (*relay, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var healthy []*relay
	for _, r := range e.relays {
		if r.condition == Running && !r.ended() {
			healthy = append(healthy, r)
		}
	}
	if len(healthy) == 0 {
		return nil, errNoRelay
	}
	r := healthy[e.rnd.IntN(len(healthy))]
	r.condition = becomes
	return r, nil
}

// recovers sets the condition of a relay to Running.
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
	r.Kill()
	return fmt.Sprintf("%s (process %d) killed", r.name, r.cmd.Process.Pid), func(context.Context) error { return e.addRelay(r) }, nil
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
	return fmt.Sprintf("%s (process %d) frozen", r.name, r.cmd.Process.Pid), func(context.Context) error {
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
	return "three of four calls are answered with 429", func(context.Context) error {
		remove()
		return nil
	}, nil
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
		return "", nil, fmt.Errorf("split of range %s resulted in %d ranges, not two", widest.ID, len(children))
	}
	return fmt.Sprintf("range %s was split into %s and %s", widest.ID, children[0], children[1]), func(context.Context) error {
		return e.o.Cosmos.Merge(n.Database, n.Container, children[0], children[1])
	}, nil
}

// width returns a width to compare ranges, from the first digits of their bounds.
func width(r cosmosemu.PartitionKeyRange) int {
	const digits, end = 8, 0x40000000 // the last effective partition key of a hash
	bound := func(text string) int {
		n, _ := strconv.ParseUint((text + strings.Repeat("0", digits))[:digits], 16, 64) // the emulator writes hexadecimal
		return min(int(n), end)
	}
	return bound(r.MaxExclusive) - bound(r.MinInclusive)
}

// poisoned is the broker's reply to messages of a poisoned contact.
var poisoned = busemu.Fault{Err: &busemu.Error{Condition: "amqp:link:message-size-exceeded", Description: "The playground refuses this message as too large."}}

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
		return "", nil, errors.New("no event was sent for 5 s: wait until relays send again")
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
	// healed is the time after the poison fault in which parked events of the contact are
	// checked up, because a relay may still be parking one.
	healed = 10 * time.Second
	// clockPause is the minimum time between two moves of the clock.
	clockPause = 15 * time.Second
)

func moveClock(_ context.Context, e *Engine) (string, func(context.Context) error, error) {
	const ahead = time.Minute
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.relays {
		if r.condition == Frozen || r.condition == Cut {
			return "", nil, fmt.Errorf("%s is %s: its pending messages would be older than the broker's duplicate window, a limit of RELIABILITY.md; wait until it recovers", r.name, r.condition)
		}
	}
	if time.Since(e.clockMoved) < clockPause {
		return "", nil, errors.New("the clock was moved a moment ago: wait 15 s, so that no event expires before it is judged")
	}
	e.clockMoved = time.Now()
	e.o.Cosmos.Advance(ahead)
	e.o.Bus.Advance(ahead)
	return "the clocks of both services jumped ahead by a minute", nil, nil
}
