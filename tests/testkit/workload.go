package testkit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path"
	"sync"
	"time"
)

// Workload changes contacts through the HTTP API and keeps the history that
// Verify needs. Its fields are set before Run; it is safe to read History while
// Run goes on.
type Workload struct {
	Base     string // of the API, for example http://127.0.0.1:8080
	Client   *http.Client
	Contacts int   // how many contacts are made
	Changes  int   // how many requests succeed or stay unknown in all, creates included
	Writers  int   // concurrent clients; contacts are shared out among them
	Seed     int64 // of the choice of contact and kind of change
	// Pace is the pause of each writer between two requests. Default none.
	Pace time.Duration

	mu      sync.Mutex // guards what follows
	acked   map[string]int
	unknown map[string]int
	lost    int // creates without a reply
	done    int
}

// Run makes the contacts and then changes them until Changes is reached or ctx
// ends. A refused request is an error; a request whose reply never came is
// counted as unknown.
func (w *Workload) Run(ctx context.Context) error {
	w.mu.Lock()
	w.acked, w.unknown = make(map[string]int), make(map[string]int)
	w.mu.Unlock()
	errs := make(chan error, w.Writers)
	for n := range w.Writers {
		go func() { errs <- w.writer(ctx, n) }()
	}
	var first error
	for range w.Writers {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// History returns copies of the counts of acknowledged and unknown changes per
// contact, and their sum.
func (w *Workload) History() (acked, unknown map[string]int, done int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	acked, unknown = make(map[string]int, len(w.acked)), make(map[string]int, len(w.unknown))
	for k, n := range w.acked {
		acked[k] = n
	}
	for k, n := range w.unknown {
		unknown[k] = n
	}
	return acked, unknown, w.done
}

func (w *Workload) writer(ctx context.Context, n int) error {
	rnd := rand.New(rand.NewPCG(uint64(w.Seed), uint64(n)))
	share := func(total int) int { return total/w.Writers + btoi(n < total%w.Writers) }
	var mine []string
	for i := range share(w.Changes) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(w.Pace):
		}
		if len(mine) < share(w.Contacts) {
			id, err := w.create(ctx, n, i)
			if err != nil {
				return err
			}
			if id != "" {
				mine = append(mine, id)
			}
			continue
		}
		if err := w.change(ctx, mine[rnd.IntN(len(mine))], n, i, rnd); err != nil {
			return err
		}
	}
	return nil
}

// LostCreates counts the creates whose reply never came: contacts that may be
// stored under ids nobody learnt.
func (w *Workload) LostCreates() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

func (w *Workload) create(ctx context.Context, n, i int) (id string, err error) {
	body := map[string]any{"firstName": fmt.Sprintf("First%d", n), "lastName": fmt.Sprintf("Last%d", i), "companyName": "Contoso", "email": fmt.Sprintf("c%d.%d@contoso.com", n, i)}
	status, header, err := w.post(ctx, "/api/contacts", body)
	switch {
	case err != nil || status >= http.StatusInternalServerError:
		w.mu.Lock()
		w.lost++
		w.mu.Unlock()
		return "", nil //nolint:nilerr // the outcome is unknown, which the history says
	case status != http.StatusCreated:
		return "", fmt.Errorf("create: status %d", status)
	}
	id = path.Base(header.Get("Location"))
	w.count(id, true)
	return id, nil
}

func (w *Workload) change(ctx context.Context, id string, n, i int, rnd *rand.Rand) error {
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
	status, _, err := w.post(ctx, "/api/contacts/"+id+"/"+c.verb, c.body)
	switch {
	case err != nil || status >= http.StatusInternalServerError:
		w.count(id, false)
		return nil //nolint:nilerr // the outcome is unknown, which the history says
	case status == http.StatusNoContent:
		w.count(id, true)
		return nil
	default:
		return fmt.Errorf("%s of %s: status %d", c.verb, id, status)
	}
}

func (w *Workload) post(ctx context.Context, route string, body any) (status int, header http.Header, err error) {
	data, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.Base+route, bytes.NewReader(data))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := w.Client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode, resp.Header, err
}

func (w *Workload) count(id string, acked bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done++; acked {
		w.acked[id]++
	} else {
		w.unknown[id]++
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
