package publish

import (
	"cmp"
	"time"

	"feedbox/application/relay"
)

// Verdict is a line of a publisher's table: how a failure is reported, and whether it may be the
// message's fault as well as that of the broker, its set-up or the way to it.
type Verdict struct {
	Class  relay.Class
	Reason string
	Doubt  bool
}

// What Verdict.Doubt says.
const (
	Certain = false
	Unsure  = true
)

// As returns a verdict.
func As(class relay.Class, reason string, doubt bool) Verdict { return Verdict{class, reason, doubt} }

// Of returns err as the relay decides by it.
func (v Verdict) Of(err error) *relay.Error {
	return &relay.Error{Class: v.Class, Reason: v.Reason, Ambiguous: v.Doubt, Err: err}
}

// Failed returns the error of a call from the results of its groups, each in its place: nil if
// none has failed.
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

// Report is what is told of groups that went together, from the results of all groups of a call.
func Report(results []relay.KeyError, together []int, messages int, began time.Time) relay.BatchReport {
	r := relay.BatchReport{Keys: len(together), Messages: messages, Took: time.Since(began)}
	for _, g := range together {
		r.Err = cmp.Or(r.Err, results[g].Err)
	}
	return r
}
