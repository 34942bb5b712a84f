package world

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"feedbox/infrastructure/consumer"
)

// mood is the behavior of the handlers for one event, the same in all processes. The counters are the
// calls left that end in that way; the handler then succeeds.
type mood struct {
	refused  int  // by an error that is final for the kit, until an operator retries
	hopeless bool // refused until the end of the run
	failed   int
	panics   int
	wait     time.Duration // of one call
	policy   bool          // the policy recognizes a refusal, not the handler
}

// moods draws a mood for each event when a handler first receives it. It is safe for concurrent use.
type moods struct {
	mu     sync.Mutex // guards the fields below
	rnd    *rand.Rand
	events map[string]*mood
	blamed map[string]bool // events with an error that may park them
	down   bool            // the dependency
	mended bool            // every event succeeds
}

// dependency is needed by the handlers of the actions whose policy names it.
const dependency = "crm"

// attempts is low, so that some events fail too often.
const attempts = 5

var (
	errDependency = errors.New("the dependency does not answer")
	errFails      = errors.New("the handler failed")
	errRefuses    = errors.New("the handler refused")
	errConfuses   = errors.New("the policy cannot classify this")
)

// policies differ by action, so that every event of a key may have another one.
var policies = map[string]consumer.Policy{
	"":                               {IsRefused: isRefused},
	"ContactEmailUpdatedEvent":       {IsRefused: isRefused, Dependency: dependency},
	"OrderLineAddedEvent":            {IsRefused: isRefused, Dependency: dependency, Attempts: 3},
	"ContactDescriptionUpdatedEvent": {IsRefused: isRefused, Dependency: dependency, IsUnavailable: func(err error) bool { return errors.Is(err, errDependency) }},
	"ContactCompanyUpdatedEvent":     {IsRefused: isRefused, Timeout: 10 * time.Second, Attempts: -1},
}

func isRefused(err error) bool {
	if errors.Is(err, errConfuses) {
		panic(err)
	}
	return errors.Is(err, errRefuses)
}

func (m *moods) init(rnd *rand.Rand) {
	m.rnd, m.events, m.blamed = rnd, map[string]*mood{}, map[string]bool{}
}

// draw returns the mood for a new event. Most are handled at once.
func (m *moods) draw() *mood {
	switch n := m.rnd.IntN(100); {
	case n < 1:
		return &mood{hopeless: true, policy: m.rnd.IntN(2) == 0}
	case n < 4:
		return &mood{refused: 1 + m.rnd.IntN(2), policy: m.rnd.IntN(2) == 0}
	case n < 9:
		return &mood{failed: 1 + m.rnd.IntN(3)}
	case n < 10:
		return &mood{failed: attempts + m.rnd.IntN(3)}
	case n < 13:
		return &mood{panics: 1 + m.rnd.IntN(2), policy: m.rnd.IntN(2) == 0}
	case n < 14:
		return &mood{wait: 20*time.Second + time.Duration(m.rnd.Int64N(int64(30*time.Second)))}
	}
	return &mood{}
}

// act does what the mood of e says, after a pause. Nil means that the event is to have its effect.
func (m *moods) act(ctx context.Context, n *nic, e *consumer.Event, pause time.Duration) error {
	result, wait := m.next(e)
	err := n.pause(ctx, wait+pause)
	if errors.Is(err, consumer.ErrTimeout) {
		m.blame(e)
	}
	if err != nil {
		return err
	}
	return result()
}

// next takes the next call of a handler for e.
func (m *moods) next(e *consumer.Event) (result func() error, wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mood := m.events[e.ID]
	if mood == nil {
		mood = m.draw()
		m.events[e.ID] = mood
	}
	wait, mood.wait = mood.wait, 0
	fine := func() error { return nil }
	if m.mended {
		return fine, wait
	}
	if p := policies[e.Action]; m.down && p.Dependency != "" {
		if p.IsUnavailable != nil {
			return func() error { return errDependency }, wait
		}
		return func() error { return consumer.Unavailable(errDependency) }, wait
	}
	switch {
	case mood.hopeless || mood.refused > 0:
		mood.refused--
		m.blamed[e.ID] = true
		if mood.policy {
			return func() error { return fmt.Errorf("event %s: %w", e.ID, errRefuses) }, wait
		}
		return func() error { return consumer.DeadLetter("refused_by_handler", errRefuses) }, wait
	case mood.panics > 0:
		mood.panics--
		m.blamed[e.ID] = true
		if mood.policy {
			return func() error { return errConfuses }, wait
		}
		return func() error { panic("the handler panics") }, wait
	case mood.failed > 0:
		mood.failed--
		m.blamed[e.ID] = true
		return func() error { return errFails }, wait
	}
	return fine, wait
}

func (m *moods) blame(e *consumer.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blamed[e.ID] = true
}

func (m *moods) isBlamed(event string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.blamed[event]
}

// mend makes every event succeed from now on.
func (m *moods) mend() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mended = true
}

func (m *moods) setDown(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = down
}

// SetDependency makes the dependency of the handlers unavailable, or available again.
func (w *World) SetDependency(available bool) {
	w.trace.Add("consumers", "DEPENDENCY available: %t", available)
	w.received.moods.setDown(!available)
}
