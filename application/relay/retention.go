package relay

import "time"

// Retention judges how close unsent events are to their expiry.
type Retention struct {
	TTL time.Duration // lifetime of event documents; 0 or less: they do not expire
}

// Level is how urgent it is that events are sent.
type Level uint8

const (
	// Safe is below a quarter of the lifetime.
	Safe Level = iota
	// Warning is from a quarter of the lifetime.
	Warning
	// Critical is from half of the lifetime: events will be lost if nothing is done.
	Critical
)

// String returns the level as it appears in logs and metrics.
func (l Level) String() string {
	return [...]string{"safe", "warning", "critical"}[l]
}

// Level returns how urgent it is when the oldest unsent event has the given age.
func (r Retention) Level(oldest time.Duration) Level {
	switch {
	case r.TTL <= 0 || oldest < r.TTL/4:
		return Safe
	case oldest < r.TTL/2:
		return Warning
	}
	return Critical
}
