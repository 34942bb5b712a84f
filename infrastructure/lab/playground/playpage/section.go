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
	// every is the refresh interval of the page.
	every = 500 * time.Millisecond
	// shownSeconds is the period of the curve.
	shownSeconds = 180
	// shownLines bounds the lines of the log and the effects on the page.
	shownLines = 30
)

// Section returns the section of the playground at a path of a page.
func Section(e *playground.Engine, path string) page.Section {
	v := &view{engine: e}
	return page.Section{
		Path: path, Title: "Playground", Templates: templates, Assets: assets, Style: "playground.css",
		Views: []page.View{{Template: "playground.html", Every: every, Data: func(*http.Request) (any, error) { return v.now(path), nil }}},
		Acts: []page.Act{
			{Path: "begin", Title: "Inject a fault", Verb: "Inject", AtOnce: true, Do: func(ctx context.Context, o *page.Order) error {
				return inWords(e.Begin(ctx, o.Values.Get("fault"), 0))
			}},
			{Path: "end", Title: "End a fault", Verb: "End it", AtOnce: true, Do: func(ctx context.Context, o *page.Order) error {
				err := e.End(ctx, o.Values.Get("fault"))
				if errors.Is(err, playground.ErrFault) {
					return nil // it has ended automatically
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
		Next: "Nothing was done. Go back to the playground and try again later.",
	}
}

// view shares one state among open tabs.
type view struct {
	engine *playground.Engine

	mu   sync.Mutex // guards last
	last *shown
}

// shown is the data of the template.
type shown struct {
	playground.State
	// Begin and End are the paths of the acts.
	Begin, End string
	Chart      chart
	Promises   []verify.Tally
	// Did and Lines are the last effects and lines of the log, latest first.
	Did   []effect
	Lines []line
}

// effect is an effect with formatted times.
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
	for _, d := range []time.Duration{e.Before.P50, e.During.P50, e.After.P50, e.Before.P99, e.During.P99, e.After.P99} {
		out.Took = append(out.Took, short(d))
	}
	return out
}

// short formats a duration with few digits; a dash for none.
func short(d time.Duration) string {
	switch {
	case d <= 0:
		return "–"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
}

// now returns the state of the engine. It reads the engine at most once per refresh interval,
// however many tabs are open.
func (v *view) now(path string) *shown {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last != nil && time.Since(v.last.At) < every-100*time.Millisecond {
		return v.last
	}
	s := &shown{State: v.engine.State(), Begin: strings.TrimPrefix(path+"/begin", "/"), End: strings.TrimPrefix(path+"/end", "/")}
	s.Chart = draw(v.engine.Curve(shownSeconds), s.Effects, s.At)
	s.Promises = verify.Tallies(s.Verdict.Broken)
	for _, e := range backwards(s.Effects) {
		s.Did = append(s.Did, inWordsOf(e))
	}
	for _, entry := range backwards(s.Log) {
		s.Lines = append(s.Lines, line{entry, entry.At.Format(time.TimeOnly)})
	}
	v.last = s
	return s
}

// backwards returns the last elements of a list, last one first.
func backwards[T any](list []T) []T {
	out := make([]T, 0, shownLines)
	for i := len(list) - 1; i >= 0 && len(out) < shownLines; i-- {
		out = append(out, list[i])
	}
	return out
}
