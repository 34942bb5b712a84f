package operations

import (
	"context"
	"embed"
	"io/fs"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"feedbox/infrastructure/page"
)

//go:embed templates/*.html
var files embed.FS

// Options are the choices of New.
type Options struct {
	// Port is required.
	Port Port
	// Metrics are the addresses of the relays' metrics, and of the API's, such as
	// http://relay:8090/metrics. Default none: rates are not shown then.
	Metrics []string
	// Management is where the broker's management API is; default where it usually is.
	Management string
	// Window is the topic's duplicate window, for previews; default 10 minutes.
	Window time.Duration
	// Witness has seen what a consumer got; default none.
	Witness Witness
	// Client asks for metrics; default http.DefaultClient.
	Client *http.Client
	// Log receives nothing yet that a person must know; default none.
	Log *slog.Logger
}

// Operations are the sections.
type Operations struct {
	o      Options
	reader *Reader
	lives  *cache[life]
	keys   *cache[keyView]
	doctor doctor
}

// New returns the sections. They show something once Run runs.
func New(o Options) *Operations {
	if o.Window == 0 {
		o.Window = 10 * time.Minute
	}
	if o.Client == nil {
		o.Client = http.DefaultClient
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Operations{
		o: o, reader: newReader(o.Port, o.Metrics, o.Client, o.Log),
		lives: newCache[life](), keys: newCache[keyView](),
	}
}

// Run reads for all tabs until ctx ends.
func (s *Operations) Run(ctx context.Context) error { return s.reader.Run(ctx) }

// live is the pace of views.
const live = time.Second

// Sections are those of the page.
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
			},
			Acts: s.parkedActs(),
		},
		{
			Path: "life", Title: "Life", Templates: templates,
			Views: []page.View{
				{Title: "The life of an aggregate", Template: "find.html", Data: s.find},
				{Path: "{key}", Title: "The life of an aggregate", Template: "life.html", Every: live, Data: s.life},
			},
			Acts: s.lifeActs(),
		},
		{Path: "members", Title: "Members", Templates: templates, Views: []page.View{{Title: "Leases and members", Template: "members.html", Every: live, Data: s.members}}},
		{Path: "doctor", Title: "Doctor", Templates: templates, Views: []page.View{{Template: "doctor.html", Every: live, Data: s.examine}}},
	}
}

// cache keeps what was read of single keys, so that all tabs that show one share a read.
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

// cacheSize bounds the keys that are looked at in the same second.
const cacheSize = 64

func newCache[T any]() *cache[T] { return &cache[T]{byID: map[string]*cached[T]{}} }

// get reads at most once a second for each id.
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
		one.at = time.Now()
	}
	return one.value, one.err
}

// forget has everything read anew, after an act.
func (c *cache[T]) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.byID)
}

// pageOf is a part of a list, for people.
type pageOf struct {
	From, To, Total int
	Before, After   string // addresses, "" = none
}

const pageSize = 50
