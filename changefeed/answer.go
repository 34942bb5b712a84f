package changefeed

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Answer records the outcome of item i of the batch. nil: the item is done and is not
// delivered again. Refuse(err): the document itself is at fault, which uses one of
// Options.MaxAttempts. Any other error: the item waits and is retried, without a limit on
// attempts; see WaitUntil. The last answer for an item counts. Answer is safe for
// concurrent use until the handler returns. It panics if there is no item i.
func (b *Batch) Answer(i int, err error) {
	if i < 0 || i >= len(b.Items) {
		panic(fmt.Sprintf("changefeed: answer for item %d of a batch of %d", i, len(b.Items)))
	}
	b.answers.set(i, len(b.Items), verdictOf(err))
}

// Refuse marks the error of a document that cannot be handled as it is.
// Refuse(nil) is nil.
func Refuse(err error) error {
	if err == nil {
		return nil
	}
	return &refusal{err}
}

// WaitUntil marks the error of a document that waits for an event outside itself, such as
// the end of an outage, until t at least. That time does not count towards
// Options.WaitLimit. A zero t, or one that has passed, means that the time is not known. A
// waiting document is retried after Options.RetryMin, growing to RetryMax, and not before t.
// WaitUntil(t, nil) is nil.
func WaitUntil(t time.Time, err error) error {
	if err == nil {
		return nil
	}
	return &wait{t, err}
}

type refusal struct{ error }

func (e *refusal) Unwrap() error { return e.error }

type wait struct {
	until time.Time
	error
}

func (e *wait) Unwrap() error { return e.error }

// verdict is the outcome of one item after a handler call.
type verdict struct {
	kind      verdictKind
	err       error
	outside   bool      // of waiting: see WaitUntil
	notBefore time.Time // of outside, zero if unknown
}

type verdictKind uint8

const (
	unanswered verdictKind = iota // not done; the reason is the call's error, if any
	done
	waiting
	refused
)

func verdictOf(err error) verdict {
	if err == nil {
		return verdict{kind: done}
	}
	if _, ok := errors.AsType[*refusal](err); ok {
		return verdict{kind: refused, err: err}
	}
	v := verdict{kind: waiting, err: err}
	if w, ok := errors.AsType[*wait](err); ok {
		v.outside, v.notBefore = true, w.until
	}
	return v
}

// answers holds a handler's answers. verdicts is empty until the first answer.
type answers struct {
	mu       sync.Mutex
	verdicts []verdict // guarded by mu
}

func (s *answers) set(i, of int, v verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.verdicts == nil {
		s.verdicts = make([]verdict, of)
	}
	s.verdicts[i] = v
}

// errUnanswered is the reason why an item waits if the handler answered for other items but
// not for it.
var errUnanswered = errors.New("the handler gave no answer for the document")

// verdicts returns the verdicts of all items after the handler returned err, or nil if all
// are done.
func (b *Batch) verdicts(err error) []verdict {
	b.answers.mu.Lock()
	defer b.answers.mu.Unlock()
	all := b.answers.verdicts
	if all == nil {
		if err == nil {
			return nil
		}
		all = make([]verdict, len(b.Items))
	}
	rest := verdictOf(err)
	switch rest.kind {
	case done:
		rest = verdict{err: errUnanswered}
	case refused:
		if len(b.Items) > 1 { // ignored, because it does not name the document
			rest = verdict{err: err}
		}
	default:
		rest.kind = unanswered
	}
	for i := range all {
		if all[i].kind == unanswered {
			all[i] = rest
		}
	}
	return all
}

// firstFailure returns the first error among verdicts, an answered one if there is any. It
// returns nil if all are done.
func firstFailure(verdicts []verdict) (first error) {
	for i := range verdicts {
		if err := verdicts[i].err; err != nil && (first == nil || errors.Is(first, errUnanswered)) {
			first = err
		}
	}
	return first
}

// failure returns the first failure answered so far.
func (s *answers) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return firstFailure(s.verdicts)
}
