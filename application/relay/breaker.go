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

// breaker is a circuit breaker over all sends to one shard. It decides whether a failed send is the fault of
// one key or of the broker, by the keys that failed since the broker last accepted a message.
//
//	           three keys failed, nothing accepted in between
//	[closed: sending] ------------------------------> [open: paused until t]
//	    ^                                                    |  after t:
//	    |                     failed: a later t              v  one page sends one key
//	    +------ a message accepted -------- [half-open: probing] <--+
//
// While the breaker is closed, a failure belongs to its key: an outage makes that key wait, and
// a refusal is the fault of its message. During a pause a failure belongs to the broker:
// nothing is sent, and an ambiguous refusal (Error.Ambiguous) counts as an outage. So the fault
// of one key never stops another key, and a broker that is down receives one send at a time.
// Up to two messages may be refused for a fault of the broker's set-up, because two failures
// are not enough evidence.
//
// A key is blamed for its failures (keyState.blamed) only with evidence: other keys were accepted
// after its failure began, and sending is not paused. Its failure begins again if a message of
// it is accepted, or the class of its failure changes.
type breaker struct {
	shard string // see Options.Shards
	alone bool   // there are no other shards
	now   func() time.Time
	probe chan struct{} // capacity 1: held during a probe

	mu       sync.Mutex            // guards the fields below
	accepted uint64                // number of sends with an accepted message
	failing  map[string]keyFailure // keys whose last send failed
	probes   int                   // failed sends in this pause
	until    time.Time             // end of the pause; zero = closed
	cause    error                 // of the pause
}

// keyFailure is the last failure of a key.
type keyFailure struct {
	accepted uint64 // breaker.accepted before that send
	began    uint64 // breaker.accepted after the first failure of this class
	err      error  // the same pointer for all keys of a batch
}

const (
	// minPause and maxPause bound the pauses of all sends, ± 20 %.
	minPause, maxPause = 100 * time.Millisecond, 5 * time.Second
	// minFailingKeys is the number of separate key failures, with nothing accepted in
	// between, after which the broker is considered down.
	minFailingKeys = 3
	// maxFailingKeys bounds the memory for failing keys, because an outage can affect every
	// held key. A key is removed when a message of it is accepted.
	maxFailingKeys = 10_000
	// probeWait is the wait of a key for the probe of another one, if there are other shards.
	probeWait = time.Second
)

// admit returns an error if nothing may be sent now. If probe is true, the caller may send one
// key, a different one for each turn, and must then call endProbe. Otherwise everything may be
// sent. During a probe, admit blocks until it ends, unless there are other shards: their keys on
// the page would wait, too.
func (j *breaker) admit(ctx context.Context) (probe bool, turn int, err error) {
	if !j.paused() {
		return false, 0, nil
	}
	select {
	case j.probe <- struct{}{}:
	default:
		if !j.alone {
			return false, 0, j.probing()
		}
		select {
		case j.probe <- struct{}{}:
		case <-ctx.Done():
			return false, 0, context.Cause(ctx)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.now().Before(j.until):
		err = j.brokerError(j.cause)
	case !j.until.IsZero():
		return true, j.probes, nil
	}
	j.endProbe()
	return false, 0, err
}

func (j *breaker) endProbe() { <-j.probe }

// probing returns the error of a key during the probe of another one.
func (j *breaker) probing() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.brokerError(j.cause)
	e.NotBefore = j.now().Add(probeWait)
	return e
}

// markAlone marks the groups whose last send failed, and returns their number of messages.
func (j *breaker) markAlone(groups []Group) (messages int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range groups {
		g := &groups[i]
		if _, g.Alone = j.failing[g.Key]; g.Alone {
			messages += len(g.Messages)
		}
	}
	return messages
}

// record takes the result of p's last send, with the number of accepted messages. During a
// pause it turns the errors of p's keys into errors of the broker. It reports whether a pause
// begins or is extended.
func (j *breaker) record(p *page, accepted int) (pause Pause, paused bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	// A failure beside an accepted message does not count as one since the last accepted
	// message. So remember gets the count from before this send.
	before := j.accepted
	if accepted > 0 {
		j.accepted++
		j.until, j.cause, j.probes = time.Time{}, nil, 0
	}
	var suspect []*keyState // failed, perhaps because of the broker
	for _, k := range p.groupKeys {
		switch {
		case k.err == nil:
			delete(j.failing, k.name)
		case mayBeBrokerFault(k.err):
			suspect = append(suspect, k)
			j.remember(k, before)
		}
	}
	if j.failures() < minFailingKeys {
		return Pause{}, false
	}
	for _, k := range suspect {
		if j.cause == nil || ClassOf(k.err) == Blocked {
			j.cause = k.err
		}
	}
	length := min(minPause<<min(j.probes, 10), maxPause)
	j.until = j.now().Add(time.Duration(float64(length) * (0.8 + 0.4*rand.Float64())))
	j.probes++
	for _, k := range suspect {
		k.err, k.blamed = j.brokerError(k.err), false
	}
	return Pause{Until: j.until, Err: j.cause, Shard: j.shard}, true
}

// mayBeBrokerFault reports whether a failure may have another cause than its message.
func mayBeBrokerFault(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return !ok || e.Class != Refused || e.Ambiguous
}

// remember adds the failure of a key and decides whether the key is blamed. before is the value of
// accepted before the send. mu is held.
func (j *breaker) remember(k *keyState, before uint64) {
	f, known := j.failing[k.name]
	if !known && len(j.failing) >= maxFailingKeys {
		clear(j.failing)
	}
	if !known || k.accepted > 0 || ClassOf(f.err) != ClassOf(k.err) {
		f.began = j.accepted
	}
	f.accepted, f.err = before, k.err
	k.blamed = j.accepted > f.began
	j.failing[strings.Clone(k.name)] = f // k.name aliases a document, as would the key of a known entry
}

// paused reports whether the broker is considered down.
func (j *breaker) paused() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !j.until.IsZero()
}

// mayProbe reports whether a sender that has nothing prepared should prepare a message.
func (j *breaker) mayProbe() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !j.now().Before(j.until)
}

// failures counts the failures since the last accepted message. The failure of a batch counts
// once, because one of its keys may have caused it. mu is held.
func (j *breaker) failures() int {
	n, batches := 0, make(map[*Error]bool)
	for _, t := range j.failing {
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

// brokerError turns the failure of a key into one of the broker. mu is held.
func (j *breaker) brokerError(err error) *Error {
	e := &Error{Class: ClassOf(err), Reason: ReasonOf(err), NotBefore: j.until, Err: err}
	if e.Class == Refused {
		e.Class, e.Err = Blocked, fmt.Errorf("refused for at least %d keys, and nothing accepted since: %w", minFailingKeys, err)
	}
	return e
}
