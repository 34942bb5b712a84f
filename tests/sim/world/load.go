package world

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"sync"
	"time"
)

// LoadOptions describe clients that change contacts. Zero values mean the defaults.
type LoadOptions struct {
	Writers  int           // concurrent clients; default 3
	Contacts int           // created by each writer; default 6
	Pace     time.Duration // mean pause of a writer between requests; default 2 s
	// Attempts bounds the retries of an operation until its outcome is known. Default 20.
	Attempts int
}

// Load is a running workload: creates, updates, conditional patches and deletes, with and without
// an idempotency key, some retried until their outcome is known. It keeps the history for the
// verifier.
type Load struct {
	w      *World
	o      LoadOptions
	client *Client
	ctx    context.Context //nolint:containedctx // ended by Stop, shared by the writers
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	contacts []string   // contacts to change
	acked    map[string]int
	unknown  map[string]int
	gone     map[string]int
	lost     int // creates that may have stored a contact of unknown id
	requests map[int]int
	surprise []string // answers that no client should receive
}

// StartLoad starts clients. Stop ends them; Settle does so, too.
func (w *World) StartLoad(o LoadOptions) *Load {
	if o.Writers == 0 {
		o.Writers = 3
	}
	if o.Contacts == 0 {
		o.Contacts = 6
	}
	if o.Pace == 0 {
		o.Pace = 2 * time.Second
	}
	if o.Attempts == 0 {
		o.Attempts = 20
	}
	l := &Load{w: w, o: o, client: w.NewClient(), acked: map[string]int{}, unknown: map[string]int{}, gone: map[string]int{}, requests: map[int]int{}}
	l.ctx, l.cancel = context.WithCancel(w.ctx)
	for n := range o.Writers {
		wr := &writer{Load: l, number: n, rnd: w.Random(10 + uint64(n) + 50*uint64(len(w.loads)))}
		l.done.Go(wr.run)
	}
	w.loads = append(w.loads, l)
	return l
}

// Stop ends the clients. It aborts running operations, whose outcome is then unknown. It may be
// called more than once.
func (l *Load) Stop() {
	l.cancel()
	l.done.Wait()
	l.client.Close()
}

// Requests returns the number of answers by status; 0 means no answer.
func (l *Load) Requests() map[int]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.requests)
}

// Gone returns for each contact the number of changes that were answered with 404 and so were not
// made.
func (l *Load) Gone() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.gone)
}

// Acked returns the number of acknowledged changes.
func (l *Load) Acked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, a := range l.acked {
		n += a
	}
	return n
}

func (l *Load) count(id string, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known {
		l.acked[id]++
	} else {
		l.unknown[id]++
	}
}

// writer is one client.
type writer struct {
	*Load
	number int
	serial int
	made   int
	own    []string // contacts that it created and may delete
	rnd    *rand.Rand
}

func (c *writer) run() {
	for c.pause(time.Duration(c.rnd.ExpFloat64() * float64(c.o.Pace))) {
		c.serial++
		switch n := c.rnd.IntN(100); {
		case c.made < c.o.Contacts && n < 60 || n < 5:
			c.create(c.rnd.IntN(4) > 0)
		case n < 10:
			c.remove()
		case n < 15:
			c.read()
		default:
			c.change()
		}
	}
}

// pause waits and reports whether the writer should continue.
func (c *writer) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// send sends one request to any API.
func (c *writer) send(method, path string, body any, headers ...string) Reply {
	apis := c.w.Kind("api")
	api := apis[c.rnd.IntN(len(apis))]
	r := c.client.Do(c.ctx, api, method, path, body, headers...)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[r.Status]++
	return r
}

// insist retries a request until its outcome is known. It returns the last answer and whether an
// earlier attempt may have been executed, too.
func (c *writer) insist(method, path string, body any, headers ...string) (r Reply, ambiguous bool) {
	for n := range c.o.Attempts {
		r = c.send(method, path, body, headers...)
		if r.Definite() && r.Status != http.StatusTooManyRequests {
			return r, ambiguous
		}
		ambiguous = ambiguous || r.Status != http.StatusTooManyRequests
		if !c.pause(time.Duration(float64(min(n+1, 5)) * (0.5 + c.rnd.Float64()) * float64(time.Second))) {
			break
		}
	}
	return r, ambiguous
}

func (c *writer) key() string {
	return fmt.Sprintf("%d-%d-%d-%d", c.w.id, c.w.seed, c.number, c.serial)
}

func (c *writer) value() string { return fmt.Sprintf("v%d.%d", c.number, c.serial) }

// expected records an answer that the operation must not receive.
func (c *writer) expected(what string, r Reply, statuses ...int) {
	if r.OK() || !r.Definite() || r.Status == http.StatusTooManyRequests || slices.Contains(statuses, r.Status) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.surprise) < 10 {
		c.surprise = append(c.surprise, fmt.Sprintf("harness: %s was answered with %d: %.300s", what, r.Status, r.Body))
	}
}

func (c *writer) create(keyed bool) {
	body := map[string]any{"firstName": "First" + c.value(), "lastName": "Doe", "companyName": "Contoso", "email": c.value() + "@contoso.com"}
	var r Reply
	if keyed {
		r, _ = c.insist(http.MethodPost, "/api/contacts", body, "Idempotency-Key", c.key())
	} else {
		r = c.send(http.MethodPost, "/api/contacts", body)
	}
	c.expected("a creation", r)
	if !r.OK() {
		if !r.Definite() || r.Status == http.StatusTooManyRequests && keyed {
			c.mu.Lock()
			c.lost++
			c.mu.Unlock()
		}
		return
	}
	id := path.Base(r.Header.Get("Location"))
	c.count(id, true)
	c.made++
	c.own = append(c.own, id)
	c.mu.Lock()
	c.contacts = append(c.contacts, id)
	c.mu.Unlock()
}

// pick returns a random contact, "" if there is none yet.
func (c *writer) pick() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.contacts) == 0 {
		return ""
	}
	return c.contacts[c.rnd.IntN(len(c.contacts))]
}

// change updates one value, or several by a patch, which may be conditional.
func (c *writer) change() {
	id := c.pick()
	if id == "" {
		return
	}
	at, value := "/api/contacts/"+id, c.value()
	method, body := http.MethodPost, map[string]any{}
	var headers []string
	conditional := false
	switch c.rnd.IntN(6) {
	case 0:
		at, body["firstName"], body["lastName"] = at+"/update-name", value, "Doe"
	case 1:
		at, body["description"] = at+"/update-description", value
	case 2:
		at, body["email"] = at+"/update-email", value+"@contoso.com"
	case 3:
		at, body["companyName"], body["city"] = at+"/update-company", value, "Palo Alto"
	case 4:
		conditional = true
		fallthrough
	default:
		method = http.MethodPatch
		body["description"], body["email"], body["name"] = value, value+"@contoso.com", map[string]any{"firstName": value}
		headers = []string{"Content-Type", "application/merge-patch+json"}
	}
	if conditional {
		read := c.send(http.MethodGet, "/api/contacts/"+id, nil)
		if !read.OK() {
			return
		}
		headers = append(headers, "If-Match", read.Header.Get("ETag"))
	}
	var r Reply
	ambiguous := false
	switch c.rnd.IntN(3) {
	case 0: // a single attempt
		r = c.send(method, at, body, headers...)
	case 1:
		if conditional { // the condition makes a repeat safe
			r, ambiguous = c.insist(method, at, body, headers...)
			break
		}
		fallthrough
	default:
		var tried bool
		r, tried = c.insist(method, at, body, append(headers, "Idempotency-Key", c.key())...)
		ambiguous = tried && r.Status == http.StatusNotFound // executed, then deleted by another
	}
	c.expected("a change", r, http.StatusNotFound, http.StatusPreconditionFailed, http.StatusConflict, http.StatusGone)
	switch {
	case r.OK():
		c.count(id, true)
	case !r.Definite() || ambiguous || r.Status == http.StatusTooManyRequests:
		c.count(id, false)
	case r.Status == http.StatusNotFound:
		c.mu.Lock()
		c.gone[id]++
		c.mu.Unlock()
	}
}

// remove deletes a contact that this writer created. It may be retried, because a repeated delete
// changes nothing.
func (c *writer) remove() {
	if len(c.own) < 2 {
		return
	}
	i := c.rnd.IntN(len(c.own))
	id := c.own[i]
	c.own = slices.Delete(c.own, i, i+1)
	c.mu.Lock()
	c.contacts = slices.DeleteFunc(c.contacts, func(other string) bool { return other == id })
	c.mu.Unlock()
	r, _ := c.insist(http.MethodDelete, "/api/contacts/"+id, nil)
	c.expected("a deletion", r)
	c.count(id, r.OK())
}

func (c *writer) read() {
	if id := c.pick(); id != "" && c.rnd.IntN(3) > 0 {
		c.send(http.MethodGet, "/api/contacts/"+id, nil)
		return
	}
	c.send(http.MethodGet, "/api/contacts", nil)
}
