package explorer

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/page"
)

// faults has a switch for each fault of both emulators.
type faults struct {
	switches []*fault

	cosmos *cosmosemu.Server
	bus    *busemu.Server

	mu    sync.Mutex    // guards ahead, and remove and since of switches
	ahead time.Duration // offset of the clocks
}

// fault is a switch.
type fault struct {
	Name, Service, Title, Description string
	// inject turns the fault on. It calls affected for each call that the fault affects.
	inject func(affected func()) (remove func())

	remove   func() // nil while it is off
	since    time.Time
	affected atomic.Int64
}

func newFaults(cosmos *cosmosemu.Server, bus *busemu.Server, userAgent string) faults {
	own := func(c *cosmosemu.Call) bool { return strings.HasPrefix(c.Header.Get("User-Agent"), userAgent) }
	onCosmos := func(f cosmosemu.Fault) func(affected func()) func() {
		return func(affected func()) func() {
			return cosmos.Control(cosmosemu.OpAny, func(c *cosmosemu.Call) *cosmosemu.Fault {
				if own(c) {
					return nil
				}
				affected()
				made := f
				return &made
			})
		}
	}
	onBus := func(op busemu.Operation, f busemu.Fault) func(affected func()) func() {
		return func(affected func()) func() {
			return bus.Control(op, func(*busemu.Call) *busemu.Fault {
				affected()
				made := f
				return &made
			})
		}
	}
	refuse := func(c busemu.Condition) busemu.Fault {
		return busemu.Fault{Err: &busemu.Error{Condition: c, Description: "Injected by the fault switches."}}
	}
	const slow = 500 * time.Millisecond
	return faults{cosmos: cosmos, bus: bus, switches: []*fault{
		{Name: "cosmos-throttle", Service: "Cosmos DB", Title: "Throttle", Description: "Every call gets 429 with a retry after 100 ms.", inject: onCosmos(cosmosemu.Throttled(100 * time.Millisecond))},
		{Name: "cosmos-fail", Service: "Cosmos DB", Title: "Fail", Description: "Every call gets 503.", inject: onCosmos(cosmosemu.Unavailable())},
		{Name: "cosmos-slow", Service: "Cosmos DB", Title: "Slow", Description: "Every call is delayed by 500 ms.", inject: onCosmos(cosmosemu.Fault{Delay: slow})},
		{Name: "cosmos-cut", Service: "Cosmos DB", Title: "Cut", Description: "Every connection is reset, and no call is executed.", inject: onCosmos(cosmosemu.Fault{Loss: cosmosemu.Reset})},
		{Name: "cosmos-lose", Service: "Cosmos DB", Title: "Lose replies", Description: "Every call is executed, but its reply is lost.", inject: onCosmos(cosmosemu.LostReply(cosmosemu.Reset))},
		{Name: "bus-throttle", Service: "Service Bus", Title: "Throttle", Description: "Every send is refused: the server is busy.", inject: onBus(busemu.OpSend, refuse(busemu.ServerBusy))},
		{Name: "bus-fail", Service: "Service Bus", Title: "Fail", Description: "Every send is refused: an internal error.", inject: onBus(busemu.OpSend, refuse(busemu.InternalError))},
		{Name: "bus-slow", Service: "Service Bus", Title: "Slow", Description: "Every send is delayed by 500 ms.", inject: onBus(busemu.OpSend, busemu.Fault{Delay: slow})},
		{Name: "bus-cut", Service: "Service Bus", Title: "Cut", Description: "Every send is dropped, and its connection reset.", inject: onBus(busemu.OpSend, busemu.Fault{Loss: busemu.Reset})},
		{Name: "bus-full", Service: "Service Bus", Title: "Fill", Description: "Every send is refused: quota exceeded.", inject: onBus(busemu.OpSend, refuse(busemu.QuotaExceeded))},
	}}
}

// shownFault is the state of a switch.
type shownFault struct {
	*fault
	On       bool
	Since    time.Time
	Affected int64
}

// shownFaults is the data of the view.
type shownFaults struct {
	Cosmos, Bus []shownFault
	On          int
	Ahead       time.Duration
	Now         time.Time
}

func (e *Explorer) faultsSection() page.Section {
	s := &e.faults
	return page.Section{
		Path: "faults", Title: "Faults", Templates: templates, Assets: assets, Style: "explorer.css",
		Views: []page.View{{Template: "faults.html", Every: time.Second, Data: func(*http.Request) (any, error) { return s.now(), nil }}},
		Acts: []page.Act{
			{Path: "switch", Title: "Turn a fault on or off", Verb: "Turn", AtOnce: true, Do: func(_ context.Context, o *page.Order) error {
				return s.turn(o.Values.Get("fault"), o.Values.Get("to") == "on")
			}},
			{Path: "clear", Title: "Turn all off", Verb: "Turn off", AtOnce: true, Do: func(context.Context, *page.Order) error {
				s.clear()
				return nil
			}},
			{Path: "clock", Title: "Move the clocks", Verb: "Move", AtOnce: true, Do: func(_ context.Context, o *page.Order) error {
				return s.advance(o.Values.Get("by"))
			}},
		},
	}
}

func (s *faults) now() *shownFaults {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &shownFaults{Ahead: s.ahead, Now: s.bus.Now()}
	for _, f := range s.switches {
		line := shownFault{fault: f, On: f.remove != nil, Since: f.since, Affected: f.affected.Load()}
		if line.On {
			out.On++
		}
		if strings.HasPrefix(f.Name, "cosmos") {
			out.Cosmos = append(out.Cosmos, line)
		} else {
			out.Bus = append(out.Bus, line)
		}
	}
	return out
}

// turn turns a switch on or off. It does nothing if the switch has that state already.
func (s *faults) turn(name string, on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.switches, func(f *fault) bool { return f.Name == name })
	if i < 0 {
		return missing("switch", "See the list of faults.")
	}
	switch f := s.switches[i]; {
	case on && f.remove == nil:
		f.affected.Store(0)
		f.since = time.Now()
		f.remove = f.inject(func() { f.affected.Add(1) })
	case !on && f.remove != nil:
		f.remove()
		f.remove = nil
	}
	return nil
}

func (s *faults) clear() {
	for _, f := range s.switches {
		_ = s.turn(f.Name, false) // cannot fail: the switch exists
	}
}

// steps has the steps by which the clocks can be moved.
var steps = map[string]time.Duration{"minute": time.Minute, "quarter": 15 * time.Minute, "hour": time.Hour, "day": 24 * time.Hour}

func (s *faults) advance(by string) error {
	d, known := steps[by]
	if !known {
		return missing("step of the clock", "See the buttons of the page.")
	}
	s.cosmos.Advance(d)
	s.bus.Advance(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += d
	return nil
}
