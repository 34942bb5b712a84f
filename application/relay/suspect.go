package relay

import (
	"errors"
	"fmt"
	"strings"
	"sync"
)

// suspects are the keys whose last send failed in a way that does not tell whose fault
// it was. A fault of the broker, or of the way to it, hits all keys; one that hits the
// same key again while others pass in between is the key's own.
type suspects struct {
	mu    sync.Mutex // guards byKey
	byKey map[string]suspicion
}

// suspicion is what is held against a key.
type suspicion struct {
	strikes  int    // ambiguous failures with other messages accepted since the one before
	accepted uint64 // how many messages the broker had accepted at the last failure
}

// suspectLimit bounds the keys under suspicion. An outage can bring in as many as were
// in flight; they leave with their next message that is accepted.
const suspectLimit = 10_000

func (s *suspects) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byKey) > 0
}

func (s *suspects) has(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.byKey[key]
	return ok
}

// judge returns the error of k after a send, which may turn from an ambiguous one into
// a refusal. accepted is how many messages the broker had accepted before that send.
func (s *suspects) judge(k *keyState, accepted uint64, limit int) error {
	failure, _ := errors.AsType[*Error](k.err)
	ambiguous := failure != nil && failure.Ambiguous && failure.Class != Refused && !k.untried
	s.mu.Lock()
	defer s.mu.Unlock()
	if !ambiguous {
		if k.err == nil && len(s.byKey) > 0 {
			delete(s.byKey, k.name)
		}
		return k.err
	}
	held, again := s.byKey[k.name]
	if again && accepted > held.accepted {
		held.strikes++
	}
	held.accepted = accepted
	if held.strikes >= limit {
		return &Error{Class: Refused, Reason: "unaccepted", Err: fmt.Errorf("failed %d times while other keys passed: %w", held.strikes+1, k.err)}
	}
	if s.byKey == nil || len(s.byKey) >= suspectLimit && !again {
		s.byKey = make(map[string]suspicion)
	}
	s.byKey[strings.Clone(k.name)] = held
	return k.err
}
