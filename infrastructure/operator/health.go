package operator

import (
	"cmp"
	"time"

	"feedbox/changefeed"
)

// Condition is the state of a range in one word.
type Condition string

// The conditions, from the worst to the best.
const (
	Expired  Condition = "expired" // the owner has been silent for longer than the lease lasts
	Stopped  Condition = "stopped"
	Free     Condition = "free" // no owner
	Silent   Condition = "silent"
	Unread   Condition = "unread" // the feed does not reply to the owner's reads, or refuses them
	Retrying Condition = "retrying"
	Held     Condition = "held"   // the store withholds changes because of an open transaction
	Paused   Condition = "paused" // by an operator
	Healthy  Condition = "healthy"
)

// Conditions returns all conditions, from the worst to the best.
func Conditions() []Condition {
	return []Condition{Expired, Stopped, Free, Silent, Unread, Retrying, Held, Paused, Healthy}
}

// Condition returns the condition of the range, and for how long it has lasted where that is
// known. Silence comes first, because the health that a silent owner wrote may be out of
// date. The page and the commands both show this answer.
func (r Range) Condition(now time.Time) (Condition, time.Duration) {
	health := cmp.Or(r.Lag.Health, r.Health)
	switch {
	case r.Silent > r.Expiry && r.Owner != "":
		return Expired, r.Silent
	case r.Silent > 0:
		return Silent, r.Silent
	case health == changefeed.Stopped:
		return Stopped, since(r.Failing, now)
	case r.Owner == "" && (r.State == changefeed.LeaseLive || r.State == changefeed.LeaseSplit): // a pending child is part of its parent
		return Free, 0
	case health == changefeed.Unread:
		return Unread, since(r.Failing, now)
	case health == changefeed.Retrying:
		return Retrying, since(r.Failing, now)
	case r.Paused, r.Request.Paused:
		return Paused, 0
	case r.Lag.Withheld > 0:
		return Held, r.Lag.Age
	}
	return Healthy, 0
}

func since(t, now time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return now.Sub(t)
}
