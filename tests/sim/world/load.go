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

// LoadOptions describe clients that change contacts. Zero values stand for the defaults.
type LoadOptions struct {
	Writers  int           // concurrent clients; default 3
	Contacts int           // made by each writer before it also changes some; default 6
	Pace     time.Duration // mean pause of a writer between requests; default 2 s
	// Attempts bounds how often an operation is tried until its outcome is known.
	// Default 20.
	Attempts int
}

// Load is a running workload: creations, updates, patches under a condition and
// deletions, with and without an idempotency key, some tried again until their outcome
// is known. It keeps the history that the verifier needs.
type Load struct {
	w      *World
	o      LoadOptions
	client *Client
	ctx    context.Context //nolint:containedctx // ended by Stop, shared by the writers
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu       sync.Mutex // guards what follows
	contacts []string   // that can be changed
	acked    map[string]int
	unknown  map[string]int
	gone     map[string]int
	lost     int // creations that may have made a contact nobody knows
	requests map[int]int
	surprise []string // answers that no client should get
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

// Stop ends the clients; an operation that is under way is given up, its outcome then
// unknown. It may be called again.
func (l *Load) Stop() {
	l.cancel()
	l.done.Wait()
	l.client.Close()
}

// Requests counts the answers by status; 0 stands for none.
func (l *Load) Requests() map[int]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.requests)
}

// Gone counts the changes of each contact that were answered with 404, where the client
// takes that for a change that was not made.
func (l *Load) Gone() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.gone)
}

// Acked is how many changes were acknowledged.
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
	own    []string // contacts it made and may delete
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

// pause waits and reports whether the writer is to go on.
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

// insist sends a request until its outcome is known. It returns the last answer and
// whether an earlier try may have been carried out, too.
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

// expected notes an answer that is none of those that an operation may get.
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

// pick is any contact, "" if there is none yet.
func (c *writer) pick() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.contacts) == 0 {
		return ""
	}
	return c.contacts[c.rnd.IntN(len(c.contacts))]
}

// change updates one value, several by a patch, or several if nobody else did.
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
	case 0: // tried once
		r = c.send(method, at, body, headers...)
	case 1:
		if conditional { // a repeat cannot do harm
			r, ambiguous = c.insist(method, at, body, headers...)
			break
		}
		fallthrough
	default:
		var tried bool
		r, tried = c.insist(method, at, body, append(headers, "Idempotency-Key", c.key())...)
		ambiguous = tried && r.Status == http.StatusNotFound // carried out, then deleted by another
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

// remove deletes a contact of its own; repeats change nothing.
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
