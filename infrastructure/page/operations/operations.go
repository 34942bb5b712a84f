package operations

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"html/template"
	"io/fs"
	"net/http"
	"sync"
	"time"

	"feedbox/infrastructure/page"
)

//go:embed templates/*.html
var files embed.FS

// Options configures New.
type Options struct {
	// Port is required.
	Port Port
	// Metrics lists the addresses of the metrics of relays and API, such as
	// http://relay:8090/metrics. Default none: the page then shows no rates.
	Metrics []string
	// Container is that of Port. Lags of other containers in Metrics are ignored; default none are.
	Container string
	// Management is the address of the broker's management API; default its usual address.
	Management string
	// Window is the topic's duplicate window, for previews; default 10 minutes.
	Window time.Duration
	// TraceURL is the address of a trace, with {traceId} in the place of its id. Default none:
	// traces have no links.
	TraceURL string
	// Receipts knows the events that a consumer received; default none.
	Receipts Receipts
	// Hint is a line of trusted HTML on "Now", for what is particular to the program; default none.
	Hint template.HTML
	// Client requests the metrics; default http.DefaultClient.
	Client *http.Client
}

// Operations provides the sections of the page.
type Operations struct {
	o         Options
	reader    *Reader
	timelines *cache[timeline]
	keys      *cache[keyView]
	letters   *cache[letterList]
	doctor    doctor
}

// New returns the sections. They have no data until Run runs.
func New(o Options) *Operations {
	o.Window = cmp.Or(o.Window, 10*time.Minute)
	if o.Client == nil {
		o.Client = http.DefaultClient
	}
	s := &Operations{
		o: o, reader: newReader(o.Port, o.Metrics, o.Client),
		timelines: newCache[timeline](), keys: newCache[keyView](), letters: newCache[letterList](),
	}
	s.reader.container = o.Container
	return s
}

// Run reads for all tabs until ctx ends.
func (s *Operations) Run(ctx context.Context) error { return s.reader.Run(ctx) }

// live is the pace of live views.
const live = time.Second

// Sections returns the sections in navigation order.
func (s *Operations) Sections() []page.Section {
	templates, _ := fs.Sub(files, "templates") // the folder is embedded
	return []page.Section{
		{Title: "Now", Templates: templates, Views: []page.View{{Template: "now.html", Every: live, Data: s.now}}},
		{
			Path: "ranges", Title: "Ranges", Templates: templates,
			Views: []page.View{
				{Template: "ranges.html", Every: live, Data: s.ranges},
				{Path: "{lease}", Title: "Range", Template: "range.html", Every: live, Data: s.oneRange},
			},
			Acts: s.rangeActs(),
		},
		{
			Path: "parked", Title: "Parked", Templates: templates,
			Views: []page.View{
				{Template: "parked.html", Every: live, Data: s.parked},
				{Path: "keys/{key}", Title: "Parked key", Template: "key.html", Every: live, Data: s.key},
				{Path: "keys", Title: "Parked key", Template: "key.html", Every: live, Data: s.key}, // see page.Keyed
			},
			Acts: s.parkedActs(),
		},
		{Path: "events", Title: "Events", Templates: templates, Views: []page.View{{Template: "events.html", Data: s.events}}},
		{
			Path: "dead", Title: "Dead letters", Templates: templates,
			Views: []page.View{
				{Template: "dead.html", Data: s.dead},
				{Path: "letters/{letter}", Title: "Dead letter", Template: "letter.html", Data: s.letter},
			},
			Acts: s.deadActs(),
		},
		{
			Path: "life", Title: "Timeline", Hidden: true, Templates: templates, // the list of events leads to it
			Views: []page.View{
				{Path: "{key}", Title: "Timeline of an aggregate", Template: "timeline.html", Every: live, Data: s.timeline},
				{Title: "Timeline of an aggregate", Template: "timeline.html", Every: live, Data: s.timeline}, // see page.Keyed
			},
			Acts: s.timelineActs(),
		},
		{Path: "members", Title: "Members", Templates: templates, Views: []page.View{{Title: "Leases and members", Template: "members.html", Every: live, Data: s.members}}},
		{Path: "doctor", Title: "Doctor", Templates: templates, Views: []page.View{{Template: "doctor.html", Every: live, Data: s.examine}}},
	}
}

// cache holds the latest read of single keys, so that all tabs of one key share a read.
type cache[T any] struct {
	mu   sync.Mutex
	byID map[string]*cached[T]
}

type cached[T any] struct {
	mu    sync.Mutex
	at    time.Time
	value T
	err   error
}

// cacheSize bounds the memory. At the limit the cache is cleared, because entries live for
// a second only.
const cacheSize = 64

func newCache[T any]() *cache[T] { return &cache[T]{byID: map[string]*cached[T]{}} }

// get reads each id at most once a second.
func (c *cache[T]) get(id string, read func() (T, error)) (T, error) {
	c.mu.Lock()
	one, ok := c.byID[id]
	if !ok {
		if len(c.byID) >= cacheSize {
			clear(c.byID)
		}
		one = &cached[T]{}
		c.byID[id] = one
	}
	c.mu.Unlock()
	one.mu.Lock()
	defer one.mu.Unlock()
	if time.Since(one.at) >= live-50*time.Millisecond {
		one.value, one.err = read()
		if errors.Is(one.err, context.Canceled) { // the reader has left, and others wait for the value
			one.at = time.Time{}
		} else {
			one.at = time.Now()
		}
	}
	return one.value, one.err
}

// forget empties the cache after an act, so that the next view shows its effect.
func (c *cache[T]) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.byID)
}

type pageOf struct {
	From, To, Total int
	Before, After   string // addresses, "" = none
}

const pageSize = 50
