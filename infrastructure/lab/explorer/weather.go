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

// weather is the faults of both emulators as switches.
type weather struct {
	switches []*fault

	cosmos *cosmosemu.Server
	bus    *busemu.Server

	mu    sync.Mutex    // guards what follows, and On of switches
	ahead time.Duration // of the clocks
}

// fault is a switch.
type fault struct {
	Name, Service, Title, Words string
	// throw sets the fault, which counts the calls it struck.
	throw func(struck func()) (remove func())

	remove func() // nil while it is off
	since  time.Time
	struck atomic.Int64
}

// looking is true for calls of the page itself.
type looking func(c *cosmosemu.Call) bool

func newWeather(cosmos *cosmosemu.Server, bus *busemu.Server, userAgent string) weather {
	own := looking(func(c *cosmosemu.Call) bool { return strings.HasPrefix(c.Header.Get("User-Agent"), userAgent) })
	onCosmos := func(f cosmosemu.Fault) func(struck func()) func() {
		return func(struck func()) func() {
			return cosmos.Control(cosmosemu.OpAny, func(c *cosmosemu.Call) *cosmosemu.Fault {
				if own(c) {
					return nil
				}
				struck()
				made := f
				return &made
			})
		}
	}
	onBus := func(op busemu.Operation, f busemu.Fault) func(struck func()) func() {
		return func(struck func()) func() {
			return bus.Control(op, func(*busemu.Call) *busemu.Fault {
				struck()
				made := f
				return &made
			})
		}
	}
	refuse := func(c busemu.Condition) busemu.Fault {
		return busemu.Fault{Err: &busemu.Error{Condition: c, Description: "The weather of the emulator."}}
	}
	const slow = 500 * time.Millisecond
	return weather{cosmos: cosmos, bus: bus, switches: []*fault{
		{Name: "cosmos-throttle", Service: "Cosmos DB", Title: "Throttle", Words: "Every call is answered with 429, to come back after 100 ms.", throw: onCosmos(cosmosemu.Throttled(100 * time.Millisecond))},
		{Name: "cosmos-fail", Service: "Cosmos DB", Title: "Fail", Words: "Every call is answered with 503.", throw: onCosmos(cosmosemu.Unavailable())},
		{Name: "cosmos-slow", Service: "Cosmos DB", Title: "Slow", Words: "Every call waits half a second.", throw: onCosmos(cosmosemu.Fault{Delay: slow})},
		{Name: "cosmos-cut", Service: "Cosmos DB", Title: "Cut", Words: "Every connection is reset, and nothing is executed.", throw: onCosmos(cosmosemu.Fault{Loss: cosmosemu.Reset})},
		{Name: "cosmos-lose", Service: "Cosmos DB", Title: "Lose replies", Words: "Every call is executed, and its reply is lost.", throw: onCosmos(cosmosemu.LostReply(cosmosemu.Reset))},
		{Name: "bus-throttle", Service: "Service Bus", Title: "Throttle", Words: "Every send is refused: the server is busy.", throw: onBus(busemu.OpSend, refuse(busemu.ServerBusy))},
		{Name: "bus-fail", Service: "Service Bus", Title: "Fail", Words: "Every send is refused: an internal error.", throw: onBus(busemu.OpSend, refuse(busemu.InternalError))},
		{Name: "bus-slow", Service: "Service Bus", Title: "Slow", Words: "Every send waits half a second.", throw: onBus(busemu.OpSend, busemu.Fault{Delay: slow})},
		{Name: "bus-cut", Service: "Service Bus", Title: "Cut", Words: "Every send resets its connection, and is not accepted.", throw: onBus(busemu.OpSend, busemu.Fault{Loss: busemu.Reset})},
		{Name: "bus-full", Service: "Service Bus", Title: "Fill", Words: "Every send is refused: the quota is used up.", throw: onBus(busemu.OpSend, refuse(busemu.QuotaExceeded))},
	}}
}

// shownFault is a switch as the view shows it.
type shownFault struct {
	*fault
	On     bool
	Since  time.Time
	Struck int64
}

// shownWeather is all of them.
type shownWeather struct {
	Cosmos, Bus []shownFault
	On          int
	Ahead       time.Duration
	Now         time.Time
}

func (e *Explorer) weatherSection() page.Section {
	w := &e.weather
	return page.Section{
		Path: "weather", Title: "Weather", Templates: templates, Assets: assets, Style: "explorer.css",
		Views: []page.View{{Template: "weather.html", Every: time.Second, Data: func(*http.Request) (any, error) { return w.now(), nil }}},
		Acts: []page.Act{
			{Path: "switch", Title: "Throw a switch", Verb: "Throw", AtOnce: true, Do: func(_ context.Context, o *page.Order) error {
				return w.turn(o.Values.Get("fault"), o.Values.Get("to") == "on")
			}},
			{Path: "calm", Title: "Turn all off", Verb: "Turn off", AtOnce: true, Do: func(context.Context, *page.Order) error {
				w.calm()
				return nil
			}},
			{Path: "clock", Title: "Move the clocks", Verb: "Move", AtOnce: true, Do: func(_ context.Context, o *page.Order) error {
				return w.advance(o.Values.Get("by"))
			}},
		},
	}
}

func (w *weather) now() *shownWeather {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := &shownWeather{Ahead: w.ahead, Now: w.bus.Now()}
	for _, f := range w.switches {
		line := shownFault{fault: f, On: f.remove != nil, Since: f.since, Struck: f.struck.Load()}
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

// turn throws a switch. One that stands so already is left.
func (w *weather) turn(name string, on bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.switches, func(f *fault) bool { return f.Name == name })
	if i < 0 {
		return missing("switch", "The weather has all there are.")
	}
	switch f := w.switches[i]; {
	case on && f.remove == nil:
		f.struck.Store(0)
		f.since = time.Now()
		f.remove = f.throw(func() { f.struck.Add(1) })
	case !on && f.remove != nil:
		f.remove()
		f.remove = nil
	}
	return nil
}

func (w *weather) calm() {
	for _, f := range w.switches {
		_ = w.turn(f.Name, false) // it is there
	}
}

// steps are how far the clocks can be moved at once.
var steps = map[string]time.Duration{"minute": time.Minute, "quarter": 15 * time.Minute, "hour": time.Hour, "day": 24 * time.Hour}

func (w *weather) advance(by string) error {
	d, known := steps[by]
	if !known {
		return missing("step of the clock", "The weather has all there are.")
	}
	w.cosmos.Advance(d)
	w.bus.Advance(d)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ahead += d
	return nil
}
