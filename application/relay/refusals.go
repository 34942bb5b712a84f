package relay

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
)

// refusals are the keys that were refused, in a way that does not tell whose fault it
// is, since the last message was accepted. One such key is poison. If several meet it and
// nothing passes, it is not their messages: an entity that allows nobody to send refuses
// each of them in the same words, and they would all be parked.
//
//	[passing] -- refused: limit keys, nothing accepted --> [blocked]
//	    ^                                                     |
//	    +------------------ a message accepted ---------------+
//
// While blocked every key is tried again as in an outage, so the first one that passes
// shows the others to be poison after all, if they are. What says that it is the message's
// fault, its size above all, is never doubted.
type refusals struct {
	any atomic.Bool // len(keys) > 0; read by every page

	mu   sync.Mutex // guards what follows
	keys map[string]struct{}
}

// end notes that a message was accepted.
func (f *refusals) end() {
	if !f.any.Load() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.keys)
	f.any.Store(false)
}

// judge notes the refusals of a send that had nothing accepted, and turns them into
// Blocked ones if there are too many.
func (f *refusals) judge(p *page, limit int) {
	if limit < 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range p.at {
		if k := &p.keys[i]; doubtful(k) != nil && len(f.keys) < limit {
			if f.keys == nil {
				f.keys = make(map[string]struct{})
			}
			f.keys[strings.Clone(k.name)] = struct{}{}
			f.any.Store(true)
		}
	}
	if len(f.keys) < limit {
		return
	}
	for _, i := range p.at {
		k := &p.keys[i]
		if e := doubtful(k); e != nil {
			k.err = &Error{Class: Blocked, Reason: e.Reason, Err: fmt.Errorf("refused for %d keys or more, and nothing passes: %w", limit, k.err)}
		}
	}
}

// doubtful returns the refusal of k that does not tell whose fault it is, if that is how
// k failed.
func doubtful(k *keyState) *Error {
	e, ok := errors.AsType[*Error](k.err)
	if !ok || e.Class != Refused || !e.Ambiguous || k.untried {
		return nil
	}
	return e
}
