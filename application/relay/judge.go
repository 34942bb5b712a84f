package relay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// judge decides what a failed send means: for a key, or for all of them. It knows
// which keys failed since the broker last accepted anything.
//
//	          three keys failed, nothing accepted in between
//	[sending] ----------------------------------------------> [paused until t]
//	    ^                                                          |  t is over:
//	    |                              failed: a later t           v  one page sends one key
//	    +------- a message accepted ------------- [probing] <------+
//
// While all are sending, a failure is its key's: an outage is waited out for that key, and
// a refusal is that message's. During a pause it is the broker's: nothing is sent, and a
// refusal that fits the set-up as well as the message (Error.Ambiguous) is an outage like
// the rest. So a fault of one key never stops another, one of all is met with one send at a
// time, and up to two messages may be refused for a fault of the set-up.
type judge struct {
	now   func() time.Time
	probe chan struct{} // capacity 1: held by the one probe under way

	mu       sync.Mutex         // guards what follows
	accepted uint64             // sends with something accepted
	troubled map[string]trouble // keys whose last send failed
	failed   int                // probes, in this pause
	until    time.Time          // of the pause; zero = all are sending
	cause    error              // of the pause
}

// trouble is the last failure of a key.
type trouble struct {
	accepted uint64 // judge.accepted at that time
	err      error  // the same one for all keys of a batch
}

const (
	// shortestPause and longestPause bound the pauses of all sends, give or take a fifth.
	shortestPause, longestPause = 100 * time.Millisecond, 5 * time.Second
	// troubledEnough is how many keys must fail, each by itself and with nothing accepted
	// in between, for it to be the broker's fault.
	troubledEnough = 3
	// troubledLimit bounds the keys remembered as troubled. An outage can bring in as many
	// as are held; each leaves with its next message that is accepted.
	troubledLimit = 10_000
)

// ask tells what may be sent now: nothing, for the reason of err; or one key, to probe the
// broker, another one for each turn, until endProbe is called; or everything. During a
// probe it waits for its end.
func (j *judge) ask(ctx context.Context) (probe bool, turn int, err error) {
	j.mu.Lock()
	paused := !j.until.IsZero()
	j.mu.Unlock()
	if !paused {
		return false, 0, nil
	}
	select {
	case j.probe <- struct{}{}:
	case <-ctx.Done():
		return false, 0, context.Cause(ctx)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.now().Before(j.until):
		err = j.ofTheBroker(j.cause)
	case !j.until.IsZero():
		return true, j.failed, nil
	}
	j.endProbe()
	return false, 0, err
}

func (j *judge) endProbe() { <-j.probe }

// setApart marks the groups whose last send failed. It returns how many messages those have.
func (j *judge) setApart(groups []Group) (messages int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range groups {
		g := &groups[i]
		if _, g.Alone = j.troubled[g.Key]; g.Alone {
			messages += len(g.Messages)
		}
	}
	return messages
}

// judge notes the result of p's last send, of which so many messages were accepted,
// and turns the errors of its keys into verdicts. It tells whether all sends pause now.
func (j *judge) judge(p *page, accepted int) (pause Pause, paused bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if accepted > 0 {
		j.accepted++
		j.until, j.cause, j.failed = time.Time{}, nil, 0
	}
	var doubtful []*keyState // failed, and it need not be their message's fault
	for _, k := range p.of {
		switch {
		case k.err == nil:
			delete(j.troubled, k.name)
		case mayBeTheBroker(k.err):
			doubtful = append(doubtful, k)
			j.note(k.name, k.err)
		}
	}
	if accepted > 0 || j.evidence() < troubledEnough {
		return Pause{}, false
	}
	for _, k := range doubtful {
		if j.cause == nil || ClassOf(k.err) == Blocked {
			j.cause = k.err
		}
	}
	length := min(shortestPause<<min(j.failed, 10), longestPause)
	j.until = j.now().Add(time.Duration(float64(length) * (0.8 + 0.4*rand.Float64())))
	j.failed++
	for _, k := range doubtful {
		k.err = j.ofTheBroker(k.err)
	}
	return Pause{Until: j.until, Err: j.cause}, true
}

// mayBeTheBroker reports whether a failure need not be its message's.
func mayBeTheBroker(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return !ok || e.Class != Refused || e.Ambiguous
}

// note remembers the key as troubled. mu is held.
func (j *judge) note(key string, err error) {
	if _, known := j.troubled[key]; !known && len(j.troubled) >= troubledLimit {
		clear(j.troubled)
	}
	key = strings.Clone(key) // also of a known one: the assignment replaces the key, too
	j.troubled[key] = trouble{accepted: j.accepted, err: err}
}

// evidence counts the failures since anything was accepted, that of a batch once. mu is
// held.
func (j *judge) evidence() int {
	n, batches := 0, make(map[*Error]bool)
	for _, t := range j.troubled {
		if t.accepted != j.accepted {
			continue
		}
		if e, ok := errors.AsType[*Error](t.err); ok {
			batches[e] = true
		} else {
			n++
		}
	}
	return n + len(batches)
}

// ofTheBroker turns a key's failure into the broker's. mu is held.
func (j *judge) ofTheBroker(err error) error {
	e := &Error{Class: ClassOf(err), Reason: ReasonOf(err), NotBefore: j.until, Err: err}
	if e.Class == Refused {
		e.Class, e.Err = Blocked, fmt.Errorf("refused for %d keys or more, and nothing passes: %w", troubledEnough, err)
	}
	return e
}
