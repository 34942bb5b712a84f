package workload

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// Load changes contacts until Changes is reached. Its fields are set before Run; it
// is safe to call its methods while Run goes on.
type Load struct {
	Base     string // of the API, for example http://127.0.0.1:8080
	Client   *http.Client
	Contacts int   // how many contacts are made
	Changes  int   // how many requests are sent in all, creates included
	Writers  int   // concurrent clients; contacts are shared out among them
	Seed     int64 // of the choice of contact and kind of change
	// Pace is the pause of each writer between two requests. Default none.
	Pace time.Duration
	// Rate is how many requests a second are due, over all writers. A request that is
	// sent late because the ones before it took long counts from when it was due, so
	// that Latencies tell what a client meets who comes at that time. Default 0:
	// each writer sends as soon as it can.
	Rate float64
	// Existing are contacts that are there already, shared out among the writers.
	Existing []string
	// Hot is how many percent of the changes go to one contact that all writers share,
	// the first one there is. A change that another one has overtaken is refused.
	// Default 0.
	Hot int
	// Record, if set, is told the outcome of each request. It is called from several
	// goroutines.
	Record func(Outcome)

	mu        sync.Mutex // guards what follows
	acked     map[string]int
	unknown   map[string]int
	lost      int // creates without a reply
	refused   int // 429 with Retry-After, or overtaken: nothing was changed
	done      int
	hot       string
	began     time.Time
	latencies []time.Duration
}

// Outcome is what a client learnt of a request: a line of the API history.
type Outcome struct {
	// Contact is its id; empty for a create whose reply never came.
	Contact string `json:"contact,omitempty"`
	// Outcome is acked or unknown.
	Outcome string `json:"outcome"`
}

// The values of Outcome.Outcome.
const (
	Acked   = "acked"
	Unknown = "unknown"
)

// Run makes the contacts and then changes them until Changes is reached or ctx ends.
// A request that is under way then is finished, so that nothing changes any more when
// Run returns; Client's Timeout bounds it. A request that is refused as wrong is an
// error; one that is turned away with 429 and Retry-After is counted and not sent
// again; one whose reply never came is counted as unknown. More writers than contacts
// are an error: some would have none.
func (l *Load) Run(ctx context.Context) error {
	if n := l.Contacts + len(l.Existing); l.Writers < 1 || l.Writers > n {
		return fmt.Errorf("workload: %d writers for %d contacts: each needs one of its own", l.Writers, n)
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

// History returns copies of the counts of acknowledged and unknown changes per
// contact, and their sum.
func (l *Load) History() (acked, unknown map[string]int, done int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.acked), maps.Clone(l.unknown), l.done
}

// Done is how many requests were acknowledged or stayed unknown.
func (l *Load) Done() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done
}

// LostCreates counts the creates whose reply never came: contacts that may be
// stored under ids nobody learnt.
func (l *Load) LostCreates() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// Refused counts the requests that were turned away with 429 and Retry-After, or
// overtaken by another change of the hot contact.
func (l *Load) Refused() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// Latencies returns how long the changes took that were acknowledged, creates not
// included, from when they were due, in the order of their replies.
func (l *Load) Latencies() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]time.Duration(nil), l.latencies...)
}

// writer sends the share of one client.
func (l *Load) writer(ctx context.Context, n int) error {
	whole := context.WithoutCancel(ctx)
	rnd := rand.New(rand.NewPCG(uint64(l.Seed), uint64(n)))
	share := func(total int) int {
		mine := total / l.Writers
		if n < total%l.Writers {
			mine++
		}
		return mine
	}
	var mine []string
	for i := n; i < len(l.Existing); i += l.Writers {
		mine = append(mine, l.Existing[i])
	}
	made := len(mine) + share(l.Contacts)
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

// await waits until request i of writer n is due, and returns when that was.
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

// shareHot returns the contact that all writers share; the first one offered is it.
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
	case err == nil && r.turnedAway():
		l.refuse()
		return "", nil
	case err != nil || r.status >= http.StatusInternalServerError:
		l.mu.Lock()
		l.lost++
		l.mu.Unlock()
		l.tell(Outcome{Outcome: Unknown})
		return "", nil //nolint:nilerr // the outcome is unknown, which the history says
	case r.status != http.StatusCreated:
		return "", fmt.Errorf("create: status %d: %s", r.status, r.text)
	}
	l.count(r.id, true)
	return r.id, nil
}

func (l *Load) change(ctx context.Context, id string, due time.Time, n, i int, rnd *rand.Rand) error {
	value := fmt.Sprintf("v%d.%d", n, i) // new each time, so that every request changes something
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
	case err == nil && (r.turnedAway() || l.Hot > 0 && r.overtaken()):
		l.refuse()
		return nil
	case err != nil || r.status >= http.StatusInternalServerError:
		l.count(id, false)
		return nil //nolint:nilerr // the outcome is unknown, which the history says
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
	l.tell(outcome)
}

func (l *Load) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused++
}

func (l *Load) tell(o Outcome) {
	if l.Record != nil {
		l.Record(o)
	}
}
