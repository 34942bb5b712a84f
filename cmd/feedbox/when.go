package main

import (
	"fmt"
	"time"
)

// parseWhen parses a time in RFC 3339, or an age such as 2h.
func parseWhen(text string) (time.Time, error) {
	now := time.Now()
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		ago, err := time.ParseDuration(text)
		if err != nil || ago <= 0 {
			return time.Time{}, fmt.Errorf("%q is neither a time such as 2026-01-31T08:00:00Z nor an age such as 2h", text)
		}
		t = now.Add(-ago)
	}
	if t.After(now) {
		return time.Time{}, fmt.Errorf("%q is in the future", text)
	}
	return t, nil
}
