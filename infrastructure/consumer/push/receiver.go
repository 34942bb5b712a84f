package push

import (
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// receiver is a circuit breaker: see the package comment.
type receiver struct {
	log *slog.Logger

	mu       sync.Mutex        // guards the fields below
	answered uint64            // events accepted or refused
	failing  map[string]uint64 // answered at the last failure of each key
	until    time.Time         // end of the pause; zero = closed
	asked    time.Time         // end of the wait that the receiver asked for; zero = none
	opened   time.Time         // start of the pause
	cause    error             // of the pause
	probes   int               // failed ones of this pause
	probing  bool
	changed  chan struct{} // closed when a probe or the pause ends
}

const (
	// minFailingKeys is the number of keys that failed, with nothing accepted in between, after which
	// the receiver is considered down. A single key may fail for its own reason.
	minFailingKeys = 3
	// maxFailingKeys bounds the memory, because a key whose lock was lost stays in the map.
	maxFailingKeys = 10_000
	// minPause and maxPause bound the pauses, ± 20 %. They are short, because a receiver that is
	// down gets one request after each.
	minPause, maxPause = 100 * time.Millisecond, 5 * time.Second
)

func newReceiver(log *slog.Logger) *receiver {
	return &receiver{log: log, failing: make(map[string]uint64), changed: make(chan struct{})}
}

// admission is the permission to send one request.
type admission struct {
	paused   *pausedError // set if nothing may be sent
	probe    bool
	answered uint64
}

// admit never blocks.
func (r *receiver) admit() admission {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := admission{answered: r.answered}
	now := time.Now()
	switch {
	case r.until.IsZero():
	case r.probing: // its end closes changed
		a.paused = &pausedError{until: now.Add(maxPause), changed: r.changed, err: r.cause}
	case now.Before(r.until):
		a.paused = &pausedError{until: r.until, changed: r.changed, err: r.cause}
	default:
		a.probe, r.probing = true, true
	}
	return a
}

// answer records that the receiver accepted or refused an event. It does not end a wait that the receiver
// asked for, because the request was sent before.
func (r *receiver) answer(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered++
	delete(r.failing, key)
	if !r.until.IsZero() && !time.Now().Before(r.asked) {
		r.log.Info("push resumed: the receiver answers", "paused", time.Since(r.opened).Round(time.Millisecond))
		r.until, r.probes = time.Time{}, 0
		r.wake()
	}
}

// throttle pauses all keys until t, at least for the time of a failed probe: Retry-After may be 0 or
// missing, and t is zero then. It returns the end of the pause.
func (r *receiver) throttle(t time.Time, err error) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.After(r.asked) {
		r.asked = t
	}
	if least := r.next(); least.After(t) {
		t = least
	}
	r.pause(t, err)
	return r.until
}

// next returns the end of a pause that follows a failed probe. mu is held.
func (r *receiver) next() time.Time {
	length := min(minPause<<min(r.probes, 10), maxPause)
	r.probes++
	return time.Now().Add(time.Duration(float64(length) * (0.8 + 0.4*rand.Float64())))
}

// fail records a failure of key. It reports whether the failure is that of the key, because other
// events were answered since began and sending is not paused.
func (r *receiver) fail(a admission, key string, began uint64, err error) (blamed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failing) >= maxFailingKeys {
		clear(r.failing)
	}
	r.failing[key] = a.answered
	down := 0
	for _, answered := range r.failing {
		if answered == r.answered {
			down++
		}
	}
	if a.probe || down >= minFailingKeys && r.until.IsZero() {
		r.pause(r.next(), err)
	}
	return r.until.IsZero() && r.answered > began
}

// pause begins or extends a pause. mu is held.
func (r *receiver) pause(until time.Time, err error) {
	if r.until.IsZero() {
		r.opened = time.Now()
		r.log.Warn("push paused: the receiver is unavailable", "error", err, "until", until)
	}
	r.cause = err
	if until.After(r.until) {
		r.until = until
	}
}

// end must be called after each request that was admitted.
func (r *receiver) end(a admission) {
	if a.probe {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.probing = false
		r.wake()
	}
}

func (r *receiver) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}
