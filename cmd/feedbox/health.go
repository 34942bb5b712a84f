package main

import (
	"time"

	"feedbox/changefeed"
	"feedbox/infrastructure/process/console"
)

// healthOf says in words how a range is. What its owner last wrote counts only while the
// owner is heard of, which it is if silent is 0.
func healthOf(h changefeed.Health, l changefeed.Lease, silent time.Duration) string {
	switch {
	case silent > l.Expiry:
		return "owner silent " + console.Age(silent) + ", its lease has expired"
	case silent > 0:
		return "owner silent " + console.Age(silent)
	case h == changefeed.Healthy:
		return "healthy"
	case !l.Failing.IsZero():
		return string(h) + " for " + console.Age(time.Since(l.Failing))
	}
	return string(h)
}
