package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"feedbox/infrastructure/httpapi/auth"
	"feedbox/infrastructure/httpapi/limit"
)

// shownView serves one view: as a page, or as the stream of its content.
type shownView struct {
	page    *Page
	section Section
	view    View
	files   *template.Template // default: the section's
}

func (v *shownView) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if v.view.Every > 0 && streamWanted(r) {
		v.page.stream(w, r, v.view.Every, func() ([]byte, error) {
			content, err := v.content(r)
			return v.page.fill(r, content), err
		})
		return
	}
	content, err := v.content(r)
	if moved, ok := errors.AsType[*Moved](err); ok {
		http.Redirect(w, r, v.page.options.Prefix+moved.To, http.StatusSeeOther)
		return
	}
	if err != nil {
		v.page.refuse(w, r, refusal(err))
		return
	}
	v.page.write(w, r, &frame{Status: http.StatusOK, Title: v.view.Title, Section: v.section, Live: v.view.Every > 0, Content: template.HTML(content)}) //nolint:gosec // rendered by html/template
}

func (v *shownView) content(r *http.Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(r.Context(), viewTimeout)
	defer cancel()
	data, err := v.view.Data(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	files := v.files
	if files == nil {
		files = v.page.files[v.section.Path]
	}
	var content bytes.Buffer
	err = files.ExecuteTemplate(&content, v.view.Template, Shown{Data: data, May: v.page.may(r), Who: callerOf(r).ID, URL: r.URL.RequestURI()})
	return content.Bytes(), err
}

const (
	// judgeEvery is the interval at which the reader of a stream is judged again.
	judgeEvery = time.Minute
	// keepAlive is the interval of comments on a stream without changes, because proxies
	// close idle connections.
	keepAlive = 15 * time.Second
)

// lineEnds makes all line ends of a stream one: browsers accept three, so a carriage return in a text
// would begin a line, and with it an event, that others have written.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

func streamWanted(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// enter takes a place for the person who sent a request, or says why there is none.
func enter(r *http.Request, places *limit.Places, title, things, next string) (leave func(), refused *Refusal) {
	person := callerOf(r).ID
	if person == auth.Anonymous {
		person = limit.AddressOf(r.RemoteAddr)
	}
	switch entered, free := places.Enter(person); {
	case entered:
		return func() { places.Leave(person) }, nil
	case free:
		return nil, &Refusal{Status: http.StatusTooManyRequests, Title: title, Detail: "You have as many " + things + " as are left for all others.", Next: next}
	}
	return nil, &Refusal{Status: http.StatusServiceUnavailable, Title: title, Detail: "All " + things + " are in use.", Next: "Try again in a moment."}
}

// stream renders at once and then at the given pace, and sends each result that differs
// from the last one. It returns when the client disconnects, its session ends, its credential
// is no longer valid, or the page is closed. A reader may have as many streams as are free.
//
//	event: process   id of this process; a page that another process rendered is stale
//	event: content   content of the view, HTML
//	event: trouble   error in place of content, text
func (p *Page) stream(w http.ResponseWriter, r *http.Request, every time.Duration, render func() ([]byte, error)) {
	leave, refused := enter(r, p.streams, "Too many open tabs", "live views", "Close some of your tabs.")
	if refused != nil {
		p.refuse(w, r, refused)
		return
	}
	defer leave()
	session := sessionOf(r)
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // not every server supports it
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	send := func(event string, data []byte) error {
		var message bytes.Buffer
		fmt.Fprintf(&message, "event: %s\n", event)
		for line := range strings.SplitSeq(lineEnds.Replace(string(data)), "\n") {
			fmt.Fprintf(&message, "data: %s\n", line)
		}
		message.WriteByte('\n')
		if _, err := w.Write(message.Bytes()); err != nil {
			return err
		}
		return control.Flush()
	}
	if send("process", []byte(p.process)) != nil {
		return
	}
	// The first pause is random, so that views that were opened together are not rendered together: the others'
	// requests would wait for all of them.
	tick := time.NewTicker(1 + rand.N(every))
	defer tick.Stop()
	judge := time.NewTicker(judgeEvery)
	defer judge.Stop()
	bye := func() { _ = send("process", []byte("ended")) } // the browser loads the page again, and gets the sign-in form
	var last string
	sent := time.Now()
	for {
		event := "content"
		content, err := render()
		if err != nil {
			event, content = "trouble", []byte(refusal(err).Error())
		}
		if now := event + string(content); now != last {
			if send(event, content) != nil {
				return
			}
			last, sent = now, time.Now()
		} else if time.Since(sent) >= keepAlive {
			if _, err := w.Write([]byte(": still here\n\n")); err != nil || control.Flush() != nil {
				return
			}
			sent = time.Now()
		}
		select {
		case <-tick.C:
			tick.Reset(every)
		case <-judge.C:
			if !p.mayStillRead(r) {
				bye()
				return
			}
		case <-session:
			bye()
			return
		case <-r.Context().Done():
			return
		case <-p.life.Done():
			return
		}
	}
}
