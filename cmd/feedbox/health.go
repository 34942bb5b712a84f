package main

import (
	"time"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/console"
)

// healthOf formats the condition of a range, and for how long it has lasted. For an expired
// lease that is the silence of its owner.
func healthOf(r operator.Range, now time.Time) string {
	condition, lasted := r.Condition(now)
	switch {
	case condition == operator.Expired:
		return "expired, owner silent for " + console.Age(lasted)
	case lasted > 0:
		return string(condition) + " for " + console.Age(lasted)
	}
	return string(condition)
}
