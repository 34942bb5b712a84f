package playpage

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"feedbox/infrastructure/lab/playground"
	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/page"
)

//go:embed templates assets
var embedded embed.FS

var (
	templates, _ = fs.Sub(embedded, "templates") // the folders are embedded
	assets, _    = fs.Sub(embedded, "assets")
)

const (
	// every is the pace of the page.
	every = 500 * time.Millisecond
	// shownSeconds is how much of the past the curve shows.
	shownSeconds = 180
	// shownLines is how much of the log and of the effects the page shows.
	shownLines = 30
)

// Section is the playground at an address of a page.
func Section(e *playground.Engine, path string) page.Section {
	v := &view{engine: e}
	return page.Section{
		Path: path, Title: "Playground", Templates: templates, Assets: assets, Style: "playground.css",
		Views: []page.View{{Template: "playground.html", Every: every, Data: func(*http.Request) (any, error) { return v.now(path), nil }}},
		Acts: []page.Act{
			{Path: "begin", Title: "Do a fault", Verb: "Do it", AtOnce: true, Do: func(ctx context.Context, o *page.Order) error {
				return inWords(e.Begin(ctx, o.Values.Get("fault"), 0))
			}},
			{Path: "end", Title: "End a fault", Verb: "End it", AtOnce: true, Do: func(ctx context.Context, o *page.Order) error {
				err := e.End(ctx, o.Values.Get("fault"))
				if errors.Is(err, playground.ErrFault) {
					return nil // it has ended by itself
				}
				return inWords(err)
			}},
		},
	}
}

func inWords(err error) error {
	if err == nil {
		return nil
	}
	return &page.Refusal{
		Status: http.StatusConflict, Title: "Not now", Detail: err.Error() + ".",
		Next: "Nothing was done. Go back to the playground and try again when that is over.",
	}
}

// view shares what is shown among open tabs.
type view struct {
	engine *playground.Engine

	mu   sync.Mutex // guards last
	last *shown
}

// shown is what the template gets.
type shown struct {
	playground.State
	// Begin and End are the addresses of the acts.
	Begin, End string
	Chart      chart
	Promises   []promise
	// Did and Lines are the last effects and lines of the log, the latest first.
	Did   []effect
	Lines []line
}

// effect is what a fault did, in words.
type effect struct {
	playground.Effect
	Lasted string
	Took   []string // p50 and p99, each before, during and after
}

// line is a line of the log.
type line struct {
	playground.Entry
	Clock string
}

func inWordsOf(e playground.Effect) effect {
	out := effect{Effect: e, Lasted: "at once"}
	if d := e.Ended.Sub(e.Began); d > 0 {
		out.Lasted = short(d)
	}
	for _, l := range []playground.Latency{e.Before, e.During, e.After} {
		out.Took = append(out.Took, short(l.P50))
	}
	for _, l := range []playground.Latency{e.Before, e.During, e.After} {
		out.Took = append(out.Took, short(l.P99))
	}
	return out
}

// short is a duration in few digits; none is a dash.
func short(d time.Duration) string {
	switch {
	case d <= 0:
		return "–"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
}

// promise is one of the promises and how often it was broken.
type promise struct {
	verify.Promise
	Broken int
}

// now looks at the engine, at most at the pace of the page however many tabs are open.
func (v *view) now(path string) *shown {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last != nil && time.Since(v.last.At) < every-100*time.Millisecond {
		return v.last
	}
	s := &shown{State: v.engine.State(), Begin: strings.TrimPrefix(path+"/begin", "/"), End: strings.TrimPrefix(path+"/end", "/")}
	s.Chart = draw(v.engine.Curve(shownSeconds), s.Effects, s.At)
	for _, p := range verify.Promises {
		s.Promises = append(s.Promises, promise{p, s.Verdict.Broken[p.ID]})
	}
	for _, e := range backwards(s.Effects) {
		s.Did = append(s.Did, inWordsOf(e))
	}
	for _, entry := range backwards(s.Log) {
		s.Lines = append(s.Lines, line{entry, entry.At.Format(time.TimeOnly)})
	}
	v.last = s
	return s
}

// backwards are the last of a list, the last one first.
func backwards[T any](list []T) []T {
	out := make([]T, 0, shownLines)
	for i := len(list) - 1; i >= 0 && len(out) < shownLines; i-- {
		out = append(out, list[i])
	}
	return out
}
