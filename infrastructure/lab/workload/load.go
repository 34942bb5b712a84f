package workload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// Load changes contacts until Changes is reached. Set its fields before Run. Its methods may
// be called during Run.
type Load struct {
	Base     string // of the API, for example http://127.0.0.1:8080
	Client   *http.Client
	Contacts int   // contacts to create
	Changes  int   // requests to send in total, including creates
	Writers  int   // concurrent clients, which share the contacts
	Seed     int64 // of the choice of contact and kind of change
	// Pace is the pause of each writer between two requests. Default none.
	Pace time.Duration
	// Rate is the number of requests due per second, over all writers. The latency of a
	// request counts from when it was due, even if it is sent later because earlier ones
	// were slow. Otherwise Latencies would omit the delay that a client at that time sees.
	// Default 0: each writer sends without pauses.
	Rate float64
	// Existing has contacts that exist already. The writers share them, too.
	Existing []string
	// Hot is the percentage of changes that go to one contact shared by all writers, the
	// first one created. The service refuses a change that another one has overtaken.
	// Default 0.
	Hot int
	// Record, if set, is called with the outcome of each request, from several goroutines.
	Record func(Outcome)

	mu        sync.Mutex // guards the fields below
	acked     map[string]int
	unknown   map[string]int
	lost      int // creates without a reply
	refused   int // 429 with Retry-After, or overtaken: no change
	done      int
	hot       string
	began     time.Time
	latencies []time.Duration
}

// Outcome is the outcome of a request as its client saw it: a line of the history.
type Outcome struct {
	// Contact is the id of the contact; empty for a create without a reply.
	Contact string `json:"contact,omitempty"`
	// Outcome is acked or unknown.
	Outcome string `json:"outcome"`
}

// The values of Outcome.Outcome.
const (
	Acked   = "acked"
	Unknown = "unknown"
)

// Run creates the contacts and then changes them until Changes is reached or ctx ends. It
// then finishes the requests in flight, bounded by the Timeout of Client, so that the store
// does not change after Run has returned. An invalid request is an error. A request rejected
// with 429 and Retry-After is counted and not retried. A request without a reply is counted
// as unknown. More writers than contacts are an error, because some would have no contact.
func (l *Load) Run(ctx context.Context) error {
	if err := l.check(); err != nil {
		return fmt.Errorf("workload: %w", err)
	}
	l.mu.Lock()
	l.acked, l.unknown = make(map[string]int), make(map[string]int)
	l.began = time.Now()
	l.mu.Unlock()
	errs := make(chan error, l.Writers)
	for n := range l.Writers {
		go func() { errs <- l.writer(ctx, n) }()
	}
	var first error
	for range l.Writers {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// check returns an error for the first invalid field.
func (l *Load) check() error {
	known := map[string]bool{}
	for _, id := range l.Existing {
		switch {
		case id == "":
			return errors.New("an id of Existing is empty: leave it out")
		case known[id]:
			return fmt.Errorf("id %s is twice in Existing: give it once, because a contact has one writer", id)
		}
		known[id] = true
	}
	switch n := l.Contacts + len(l.Existing); {
	case l.Contacts < 0:
		return fmt.Errorf("%d contacts: give 0 or more", l.Contacts)
	case l.Writers < 1 || l.Writers > n:
		return fmt.Errorf("%d writers for %d contacts: give 1 to %d, because each writer needs a contact", l.Writers, n, n)
	case l.Changes < 1:
		return fmt.Errorf("%d changes: give at least 1, because a load without a request shows nothing", l.Changes)
	case l.Hot < 0 || l.Hot > 100:
		return fmt.Errorf("hot %d: give a percentage from 0 to 100", l.Hot)
	case l.Client == nil:
		return errors.New("the Client is missing: give one with a Timeout, which bounds each request")
	}
	return nil
}

// History returns copies of the counts of acknowledged and unknown changes per
// contact, and their sum.
func (l *Load) History() (acked, unknown map[string]int, done int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.acked), maps.Clone(l.unknown), l.done
}

// Done returns the number of requests that were acknowledged or have an unknown outcome.
func (l *Load) Done() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done
}

// LostCreates returns the number of creates without a reply. Their contacts may be stored
// under ids that no client knows.
func (l *Load) LostCreates() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// Refused returns the number of requests that were rejected with 429 and Retry-After, or
// overtaken by another change of the hot contact.
func (l *Load) Refused() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// Latencies returns the latencies of acknowledged changes without creates, from when they
// were due, in the order of their replies.
func (l *Load) Latencies() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]time.Duration(nil), l.latencies...)
}

// writer sends the requests of one client.
func (l *Load) writer(ctx context.Context, n int) error {
	whole := context.WithoutCancel(ctx)
	rnd := rand.New(rand.NewPCG(uint64(l.Seed), uint64(n)))
	share := func(total int) int { return (total - n + l.Writers - 1) / l.Writers } // of n, n+Writers, n+2*Writers, ...
	var mine []string
	for i := n; i < len(l.Existing); i += l.Writers {
		mine = append(mine, l.Existing[i])
	}
	made := share(len(l.Existing) + l.Contacts) // in one sequence, otherwise a writer could have neither
	for i := range share(l.Changes) {
		due, ok := l.await(ctx, n, i)
		if !ok {
			return nil
		}
		if len(mine) < made {
			id, err := l.create(whole, n, i)
			if err != nil {
				return err
			}
			if id != "" {
				mine = append(mine, id)
			}
			continue
		}
		id := mine[rnd.IntN(len(mine))]
		if l.Hot > 0 && rnd.IntN(100) < l.Hot {
			id = l.shareHot(id)
		}
		if err := l.change(whole, id, due, n, i, rnd); err != nil {
			return err
		}
	}
	return nil
}

// await waits until request i of writer n is due, and returns that time.
func (l *Load) await(ctx context.Context, n, i int) (due time.Time, ok bool) {
	pause := l.Pace
	if l.Rate > 0 {
		due = l.began.Add(time.Duration(float64(i*l.Writers+n) / l.Rate * float64(time.Second)))
		pause = time.Until(due)
	}
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return due, false
		case <-timer.C:
		}
	}
	if due.IsZero() {
		due = time.Now()
	}
	return due, ctx.Err() == nil
}

// shareHot returns the hot contact. The first call sets it to id.
func (l *Load) shareHot(id string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hot == "" {
		l.hot = id
	}
	return l.hot
}

func (l *Load) create(ctx context.Context, n, i int) (id string, err error) {
	body := map[string]any{"firstName": fmt.Sprintf("First%d", n), "lastName": fmt.Sprintf("Last%d", i), "companyName": "Contoso", "email": fmt.Sprintf("c%d.%d@contoso.com", n, i)}
	r, err := l.post(ctx, "/api/contacts", body)
	switch {
	case err == nil && r.rejected():
		l.refuse()
		return "", nil
	case err != nil || r.status >= http.StatusInternalServerError:
		l.mu.Lock()
		l.lost++
		l.mu.Unlock()
		l.record(Outcome{Outcome: Unknown})
		return "", nil //nolint:nilerr // recorded as an unknown outcome
	case r.status != http.StatusCreated:
		return "", fmt.Errorf("create: status %d: %s", r.status, r.text)
	}
	l.count(r.id, true)
	return r.id, nil
}

func (l *Load) change(ctx context.Context, id string, due time.Time, n, i int, rnd *rand.Rand) error {
	value := fmt.Sprintf("v%d.%d", n, i) // unique, because an unchanged value raises no event
	changes := []struct {
		verb string
		body map[string]any
	}{
		{"update-name", map[string]any{"firstName": value, "lastName": "Doe"}},
		{"update-description", map[string]any{"description": value}},
		{"update-email", map[string]any{"email": value + "@contoso.com"}},
		{"update-company", map[string]any{"companyName": value, "city": "Palo Alto"}},
	}
	c := changes[rnd.IntN(len(changes))]
	r, err := l.post(ctx, "/api/contacts/"+id+"/"+c.verb, c.body)
	switch {
	case err == nil && (r.rejected() || l.Hot > 0 && r.overtaken()):
		l.refuse()
		return nil
	case err != nil || r.status >= http.StatusInternalServerError:
		l.count(id, false)
		return nil //nolint:nilerr // recorded as an unknown outcome
	case r.status == http.StatusNoContent:
		l.count(id, true)
		l.mu.Lock()
		l.latencies = append(l.latencies, time.Since(due))
		l.mu.Unlock()
		return nil
	default:
		return fmt.Errorf("%s of %s: status %d: %s", c.verb, id, r.status, r.text)
	}
}

func (l *Load) count(id string, acked bool) {
	l.mu.Lock()
	l.done++
	outcome := Outcome{Contact: id, Outcome: Acked}
	if acked {
		l.acked[id]++
	} else {
		l.unknown[id]++
		outcome.Outcome = Unknown
	}
	l.mu.Unlock()
	l.record(outcome)
}

func (l *Load) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused++
}

func (l *Load) record(o Outcome) {
	if l.Record != nil {
		l.Record(o)
	}
}
