package page

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"feedbox/infrastructure/httpapi/auth"
	"feedbox/infrastructure/httpapi/hostguard"
	"feedbox/infrastructure/httpapi/limit"
)

// Page is an http.Handler that serves all sections. It is safe for concurrent use.
type Page struct {
	options  Options
	mux      *http.ServeMux
	layout   *template.Template
	files    map[string]*template.Template // by section path
	blank    string                        // stands for the token of a form until the page is sent
	blankTo  string                        // stands for the address to return to after the sign-in
	signing  atomic.Pointer[[]byte]        // the page for sign-in with both blanks, once it was rendered
	secret   []byte                        // of these tokens
	process  string                        // random id, so that a tab notices a restart
	sessions *sessions
	jobs     *jobs
	guesses  *limit.Rates  // of wrong credentials by address
	streams  *limit.Places // of live views by reader
	places   *limit.Places // of running acts by person
	refusals limit.Sampler // of log lines

	life    context.Context //nolint:containedctx // of streams and jobs; ended by Close
	end     context.CancelFunc
	local   atomic.Bool // Run serves on a loopback address
	running sync.WaitGroup
}

var (
	prefixForm  = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)*$`)
	segmentForm = regexp.MustCompile(`^[a-z0-9-]*$`)
)

// New returns a page. The error lists every invalid option. Call Close to end the page.
func New(options *Options) (*Page, error) {
	o := *options
	o.Title = cmp.Or(o.Title, "Feedbox")
	o.Auth = cmp.Or[auth.Authenticator](o.Auth, auth.Open{})
	o.MaxConnections = cmp.Or(o.MaxConnections, 500)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	p := &Page{
		options: o, mux: http.NewServeMux(), files: map[string]*template.Template{},
		blank: rand.Text(), blankTo: rand.Text(), secret: []byte(rand.Text()), process: rand.Text(), sessions: newSessions(), jobs: &jobs{},
		guesses: limit.NewRates(guessRate, guessBurst), streams: limit.NewPlaces(o.MaxConnections / 2), places: limit.NewPlaces(maxRunning),
	}
	if !prefixForm.MatchString(o.Prefix) {
		return nil, fmt.Errorf("prefix %q: it must begin with a slash, not end with one, and contain only letters, digits and -._~", o.Prefix)
	}
	var err error
	if p.layout, err = template.New("").Funcs(p.functions()).ParseFS(templates, "templates/*.html"); err != nil {
		return nil, err
	}
	p.life, p.end = context.WithCancel(context.Background()) //nolint:forbidigo // Close ends it; requests must not
	if err := p.route(); err != nil {
		p.end()
		return nil, err
	}
	return p, nil
}

// Close ends streams and jobs and waits for the jobs. The page must not be used after it.
func (p *Page) Close() {
	p.end()
	p.running.Wait()
}

// ServeHTTP serves the addresses below the prefix.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	guardHeaders(w)
	if refused := p.guard(r); refused != nil {
		p.refuse(w, r, refused)
		return
	}
	p.mux.ServeHTTP(w, r)
}

// route registers all handlers. It recovers because http.ServeMux panics on conflicting
// patterns.
func (p *Page) route() (err error) {
	defer func() {
		if clash := recover(); clash != nil {
			err = fmt.Errorf("conflicting section paths: %v", clash)
		}
	}()
	prefix := p.options.Prefix
	p.mux.HandleFunc("/", p.notFound)
	if prefix != "" {
		p.mux.Handle("GET "+prefix, http.RedirectHandler(prefix+"/", http.StatusSeeOther))
	}
	p.mux.Handle("GET "+prefix+"/assets/page/", p.serveAssets("page", assets))
	p.mux.HandleFunc("POST "+prefix+"/sign-in", p.signIn)
	p.mux.HandleFunc("POST "+prefix+"/sign-out", p.signOut)
	p.mux.Handle("GET "+prefix+"/acts/{id}", p.reading(p.jobView()))
	p.mux.Handle("GET "+prefix+"/acts", p.reading(p.jobsView()))
	var faults []error
	for _, s := range p.options.Sections {
		faults = append(faults, p.addSection(s))
	}
	return errors.Join(faults...)
}

func (p *Page) addSection(s Section) error {
	if !segmentForm.MatchString(s.Path) || s.Path == "assets" || s.Path == "acts" || s.Title == "" {
		return fmt.Errorf("section %q, title %q: set a title, and a path of lower-case letters, digits and - other than assets and acts", s.Path, s.Title)
	}
	files, err := template.New("").Funcs(p.functions()).ParseFS(s.Templates, "*.html")
	if err != nil {
		return fmt.Errorf("section %q: %w", s.Path, err)
	}
	p.files[s.Path] = files
	if s.Assets != nil {
		p.mux.Handle("GET "+p.options.Prefix+"/assets/"+s.folder()+"/", p.serveAssets(s.folder(), s.Assets))
	}
	for _, v := range s.Views {
		if files.Lookup(v.Template) == nil || v.Data == nil {
			return fmt.Errorf("section %q, view %q: template %q or Data is missing", s.Path, v.Path, v.Template)
		}
		if v.Every > 0 {
			v.Every = max(v.Every, minEvery)
		}
		v.Title = cmp.Or(v.Title, s.Title)
		p.mux.Handle("GET "+p.pattern(s.Path, v.Path), p.reading(&shownView{page: p, section: s, view: v}))
	}
	for _, a := range s.Acts {
		if a.Path == "" || a.Do == nil || !a.AtOnce && a.Preview == nil {
			return fmt.Errorf("section %q, act %q: set Path, Do, and Preview unless AtOnce is set", s.Path, a.Path)
		}
		h := &actHandler{page: p, section: s, act: a}
		p.mux.Handle("GET "+p.pattern(s.Path, a.Path), p.acting(http.HandlerFunc(h.ask)))
		p.mux.Handle("POST "+p.pattern(s.Path, a.Path), p.acting(http.HandlerFunc(h.do)))
	}
	return nil
}

// folder returns the folder of the section's assets below /assets/.
func (s Section) folder() string { return cmp.Or(s.Path, "home") }

// pattern returns the address of a section's view or act, for http.ServeMux.
func (p *Page) pattern(section, below string) string {
	path := p.options.Prefix + "/" + strings.Trim(section+"/"+below, "/")
	if strings.HasSuffix(path, "/") {
		path += "{$}"
	}
	return path
}

func (p *Page) notFound(w http.ResponseWriter, r *http.Request) {
	p.refuse(w, r, &Refusal{Status: http.StatusNotFound, Title: "Page not found", Detail: "The address does not exist, or does not accept " + r.Method + ".", Next: "Use the navigation."})
}

const (
	// drainTimeout bounds how long a shutdown waits for open requests.
	drainTimeout = 5 * time.Second
	// bodyTimeout is for a form with the document of an event.
	bodyTimeout = 30 * time.Second
)

// Run serves the page on listener until ctx ends, and closes the page. It owns the
// listener.
func (p *Page) Run(ctx context.Context, listener net.Listener) error {
	p.local.Store(hostguard.Guards(listener))
	anonymous := 0
	if _, open := p.options.Auth.(auth.Open); open {
		anonymous = -1 // no one has a name
	}
	return limit.Serve(ctx, listener, p, &limit.Options{
		Connections: p.options.MaxConnections, PerAddress: p.options.MaxConnectionsPerAddress, Body: bodyTimeout, Head: 32 << 10, Logger: p.options.Log,
		Anonymous: anonymous,
		Drain:     drainTimeout, Stopping: p.Close, // first, because the drain would wait for the streams
	})
}
