package config

import (
	"fmt"
	"time"
)

// Start is the position at which the relay begins to read a container without
// checkpoints. With checkpoints it has no effect.
type Start struct {
	Now  bool      // skip everything that was written before the relay's first start
	Time time.Time // skip everything written before it; zero means no limit
}

// String returns the form that UnmarshalText reads.
func (s Start) String() string {
	switch {
	case s.Now:
		return "now"
	case !s.Time.IsZero():
		return s.Time.Format(time.RFC3339Nano)
	default:
		return "beginning"
	}
}

// UnmarshalText reads "beginning", "now" or a time in RFC 3339.
func (s *Start) UnmarshalText(text []byte) error {
	switch value := string(text); value {
	case "beginning":
		*s = Start{}
	case "now":
		*s = Start{Now: true}
	default:
		t, err := time.Parse(time.RFC3339, value)
		if err != nil || t.IsZero() {
			return fmt.Errorf("%q is neither beginning, now nor a time such as 2026-01-31T08:00:00Z", value)
		}
		*s = Start{Time: t}
	}
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (s Start) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
