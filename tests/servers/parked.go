package servers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/testkit"
)

// ParkedKit is a consumer kit with a broker and a store of parked events.
type ParkedKit struct {
	Store parkedtest.Store
	// Inbox keeps the marks of keys. The writes of handlers are stored with them.
	Inbox consumer.Inbox
	// Start starts a process of the consumer. crash cuts its connections and waits for its end.
	Start func(o consumer.Options, handler consumer.Handler) (crash func())
	// Publish sends events in their order.
	Publish func(all []relay.Group)
	// Keys is the number of keys, each with 40 events.
	Keys int
}

const parkedEach = 40 // events of a key

// TestParked sends events of which 1 in 100 is refused until an operator has removed the cause, and crashes
// processes between any two requests to the inbox and the store of parked events. An operator retries and
// skips at random. Each event has one effect, in the order of its key, unless it was skipped.
// FEEDBOX_PARKED_KEYS sets the number of keys: 500 are 20,000 events.
func TestParked(t *testing.T, k ParkedKit) {
	t.Helper()
	seed := testkit.Seed(t, 1)
	r := &parkedRun{ParkedKit: k, rnd: rand.New(rand.NewPCG(seed, 1)), poison: map[string]bool{}, marks: k.Inbox, effect: make(chan struct{}, 1)}
	if n, err := strconv.Atoi(os.Getenv("FEEDBOX_PARKED_KEYS")); err == nil {
		r.Keys = n
	}
	var all []relay.Group
	for key := range r.Keys {
		g := relay.Group{Key: fmt.Sprint("key-", key)}
		for n := range int64(parkedEach) {
			id := fmt.Sprintf("%s.%d", g.Key, n+1)
			g.Messages = append(g.Messages, relay.Message{
				ID: id, Key: g.Key, Action: "Changed", Body: fmt.Appendf(nil, `{"id":%q}`, id), Sequence: n + 1, AggregateVersion: n + 1,
			})
			if r.rnd.IntN(100) == 0 || id == "key-0.7" || id == "key-1.8" { // one of each kind of refusal, see handle
				r.poison[id] = true
			}
		}
		all = append(all, g)
	}
	poison := len(r.poison)
	published := make(chan struct{})
	go func() {
		defer close(published)
		for part := range 4 {
			var groups []relay.Group
			for _, g := range all {
				groups = append(groups, relay.Group{Key: g.Key, Messages: g.Messages[part*parkedEach/4 : (part+1)*parkedEach/4]})
			}
			k.Publish(groups)
		}
	}()
	processes, crashes := []*parkedProcess{r.start(), r.start()}, 0
	end := time.Now().Add(5*time.Minute + time.Duration(r.Keys)*time.Second)
	for time.Now().Before(end) && !r.complete(t) {
		time.Sleep(100 * time.Millisecond)
		r.operate(t)
		for i, p := range processes {
			if p.isDead() {
				p.crash()
				crashes++
				processes[i] = r.start()
			}
		}
	}
	<-published
	for _, p := range processes {
		p.die()
		p.crash()
	}
	r.judge(t, all)
	t.Logf("%d events, %d refused at first, %d crashes, %d skipped", r.Keys*parkedEach, poison, crashes, len(r.skipped))
	if crashes == 0 {
		t.Error("no crash")
	}
}

type parkedRun struct {
	ParkedKit
	skipped []relay.EventRef
	rolls   atomic.Int64
	effect  chan struct{} // held for one effect at a time; not a mutex, because it is held during requests

	mu      sync.Mutex // guards the fields below
	rnd     *rand.Rand
	poison  map[string]bool // by event
	marks   consumer.Inbox
	effects []verify.Message
}

func (r *parkedRun) isPoison(event string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.poison[event]
}

func (r *parkedRun) roll(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rnd.IntN(n)
}

// complete reports whether all events are handled or skipped.
func (r *parkedRun) complete(t *testing.T) bool {
	r.mu.Lock()
	handled := len(r.effects)
	r.mu.Unlock()
	r.skipped = r.skipped[:0]
	if handled < r.Keys*parkedEach*9/10 {
		return false
	}
	for key := range r.Keys {
		records, err := r.Store.Skipped(t.Context(), fmt.Sprint("key-", key))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range records {
			r.skipped = append(r.skipped, relay.EventRef{Key: s.Event.Key, ID: s.Event.ID})
		}
	}
	closed, err := r.Store.Closed(t.Context())
	return err == nil && len(closed) == 0 && handled+len(r.skipped) >= r.Keys*parkedEach
}

// operate requests something for some of the parked keys.
func (r *parkedRun) operate(t *testing.T) {
	keys, err := r.Store.Closed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		g, err := r.Store.Gate(t.Context(), key)
		first, firstErr := r.Store.First(t.Context(), key, 1, 1<<20)
		if err != nil || firstErr != nil || g.Intent != nil || len(first) == 0 {
			continue
		}
		intent := relay.Intent{Verb: relay.VerbRetry, By: "ann", At: time.Now().UTC().Round(time.Millisecond)}
		switch r.roll(8) {
		case 0:
			intent.Verb, intent.Event = relay.VerbSkip, first[0].ID
		case 1, 2: // the cause is still there
		default:
			r.mu.Lock()
			delete(r.poison, first[0].ID)
			r.mu.Unlock()
		}
		_, _ = r.Store.SetIntent(t.Context(), key, intent) // the gate may be open by now
	}
}

// judge verifies the effects. Skipped events count at their places.
func (r *parkedRun) judge(t *testing.T, all []relay.Group) {
	t.Helper()
	run := verify.Run{Messages: r.effects}
	for _, g := range all {
		run.Aggregates = append(run.Aggregates, verify.Aggregate{ID: g.Key, Version: int64(len(g.Messages)), Sequence: int64(len(g.Messages))})
		for _, m := range g.Messages {
			run.Events = append(run.Events, verify.Event{ID: m.ID, Key: m.Key, Action: m.Action, Version: m.AggregateVersion, Sequence: m.Sequence})
			if !slices.Contains(r.skipped, relay.EventRef{Key: m.Key, ID: m.ID}) {
				continue
			}
			if slices.ContainsFunc(run.Messages, func(e verify.Message) bool { return e.ID == m.ID }) {
				t.Errorf("event %s was skipped and handled", m.ID)
			}
			at := slices.IndexFunc(run.Messages, func(e verify.Message) bool { return e.Session == m.Key && e.Sequence > m.Sequence })
			if at < 0 {
				at = len(run.Messages)
			}
			run.Messages = slices.Insert(run.Messages, at, verify.Message{ID: m.ID, Session: m.Key, Subject: m.Action, Version: m.AggregateVersion, Sequence: m.Sequence})
		}
	}
	seen := map[string]bool{}
	last := map[string]int64{}
	for _, m := range run.Messages {
		if seen[m.ID] || m.Sequence != last[m.Session]+1 {
			t.Errorf("event %s after %d of its key, handled before: %v", m.ID, last[m.Session], seen[m.ID])
		}
		seen[m.ID], last[m.Session] = true, m.Sequence
	}
	for _, breach := range run.Verify() {
		t.Error(breach)
	}
	if closed, err := r.Store.Closed(context.WithoutCancel(t.Context())); err != nil || len(closed) > 0 {
		t.Errorf("keys %v are still parked, %v", closed, err)
	}
	if missing := slices.DeleteFunc(slices.Collect(maps.Keys(r.poison)), func(id string) bool { return seen[id] }); len(missing) > 0 {
		t.Errorf("refused and neither handled nor skipped: %v", missing)
	}
}

// parkedProcess is a process that may crash at each request to a store. It then has no more effects: its
// requests and handlers fail.
type parkedProcess struct {
	run   *parkedRun
	crash func()

	mu   sync.Mutex // guards dead
	dead bool
}

var errCrashed = errors.New("the process has crashed")

func (r *parkedRun) start() *parkedProcess {
	p := &parkedProcess{run: r}
	store := crashingStore{r.Store, p}
	p.crash = r.Start(consumer.Options{
		Park: store, ParkedPoll: 500 * time.Millisecond, Inbox: crashingInbox{p}, Attempts: 2, RetryDelay: 20 * time.Millisecond, RetryDelayMax: 100 * time.Millisecond, DrainTimeout: time.Second,
	}, p.handle)
	return p
}

func (p *parkedProcess) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

func (p *parkedProcess) die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
}

// crashes reports whether the process has crashed, or crashes now.
func (p *parkedProcess) crashes() bool {
	if p.run.rolls.Add(1) == int64(min(500, 50*p.run.Keys)) || p.run.roll(min(25*p.run.Keys, 4000)) == 0 {
		p.die()
	}
	return p.isDead()
}

func request[V any](p *parkedProcess, do func() (V, error)) (v V, err error) {
	if p.crashes() {
		return v, errCrashed
	}
	if v, err = do(); p.crashes() {
		return v, errCrashed
	}
	return v, err
}

func (p *parkedProcess) handle(ctx context.Context, e *consumer.Event) error {
	r := p.run
	if p.crashes() {
		return errCrashed
	}
	r.effect <- struct{}{}
	defer func() { <-r.effect }()
	if r.isPoison(e.ID) {
		if e.Sequence%2 == 0 {
			return consumer.DeadLetter("poison", errors.New("cannot be handled yet"))
		}
		return errors.New("cannot be handled yet")
	}
	if p.isDead() || ctx.Err() != nil {
		return errCrashed
	}
	// The effect and the mark, as in one transaction.
	last, err := r.marks.Last(context.WithoutCancel(ctx), e.InboxKey())
	if err != nil {
		return err
	}
	if v := consumer.Judge(last, e); v == consumer.Duplicate || v == consumer.Stale {
		return nil
	}
	if err := last.MayHandle(e); err != nil {
		return err
	}
	if err := r.marks.Record(context.WithoutCancel(ctx), e.InboxKey(), last.Next(e)); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.effects = append(r.effects, verify.Message{ID: e.ID, Session: e.Key, Subject: e.Action, Version: e.AggregateVersion, Sequence: e.Sequence})
	return nil
}

type crashingInbox struct{ p *parkedProcess }

func (b crashingInbox) Last(ctx context.Context, key string) (consumer.Mark, error) {
	return request(b.p, func() (consumer.Mark, error) { return b.p.run.Inbox.Last(ctx, key) })
}

func (b crashingInbox) Record(ctx context.Context, key string, m consumer.Mark) error {
	_, err := request(b.p, func() (bool, error) {
		b.p.run.effect <- struct{}{} // none between the read and the write of an effect's mark
		defer func() { <-b.p.run.effect }()
		return true, b.p.run.Inbox.Record(ctx, key, m)
	})
	return err
}

type crashingStore struct {
	parkedtest.Store
	p *parkedProcess
}

func (s crashingStore) Park(ctx context.Context, key string, events []relay.ParkedEvent, closing *relay.Closing) (relay.ParkResult, error) {
	return request(s.p, func() (relay.ParkResult, error) { return s.Store.Park(ctx, key, events, closing) })
}

func (s crashingStore) Gate(ctx context.Context, key string) (relay.Gate, error) {
	return request(s.p, func() (relay.Gate, error) { return s.Store.Gate(ctx, key) })
}

func (s crashingStore) Update(ctx context.Context, g relay.Gate) (relay.Gate, error) {
	return request(s.p, func() (relay.Gate, error) { return s.Store.Update(ctx, g) })
}

func (s crashingStore) Remove(ctx context.Context, g relay.Gate, events []relay.ParkedEvent, skipped *relay.Skipped) (relay.Gate, error) {
	return request(s.p, func() (relay.Gate, error) { return s.Store.Remove(ctx, g, events, skipped) })
}

func (s crashingStore) Open(ctx context.Context, g relay.Gate) error {
	_, err := request(s.p, func() (bool, error) { return true, s.Store.Open(ctx, g) })
	return err
}
