package publish

import (
	"hash/fnv"
	"time"

	"feedbox/application/relay"
)

// Slots is the number of slots of keys. It must never change, because queues and topics of running systems
// are chosen by slots.
const Slots = 256

// Slot returns the slot of a key: the last byte of its FNV-1a hash of 32 bits.
func Slot(key string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // never fails
	return int(h.Sum32() % Slots)
}

// Rule is an entry of a publisher's error table: the class and reason that the relay sees.
type Rule struct {
	Class  relay.Class
	Reason string
	// Ambiguous means that the message may be the cause, but so may the broker, its configuration
	// or the network.
	Ambiguous bool
}

// Wrap returns err with the class and reason of the rule.
func (r Rule) Wrap(err error) *relay.Error {
	return &relay.Error{Class: r.Class, Reason: r.Reason, Ambiguous: r.Ambiguous, Err: err}
}

// Failed returns the error of a call from the results of its groups, which are in the order of the
// groups. It returns nil if no group has failed.
func Failed(results []relay.KeyError) error {
	var failed []relay.KeyError
	for g, r := range results {
		if r.Err != nil {
			r.Group = g
			failed = append(failed, r)
		}
	}
	if failed == nil {
		return nil
	}
	return &relay.PublishError{Keys: failed}
}

// Report returns the report of a batch. sent contains the indexes of its groups in results, which has
// the results of all groups of the call. Its error is that of the first group that the broker failed, or
// else of the first refused message, because a refused message must not hide that a queue is missing.
func Report(results []relay.KeyError, sent []int, messages, accepted int, began time.Time) relay.BatchReport {
	r := relay.BatchReport{Keys: len(sent), Messages: messages, Accepted: accepted, Took: time.Since(began)}
	for _, g := range sent {
		if err := results[g].Err; r.Err == nil || err != nil && relay.ClassOf(r.Err) == relay.Refused && relay.ClassOf(err) != relay.Refused {
			r.Err = err
		}
	}
	return r
}
