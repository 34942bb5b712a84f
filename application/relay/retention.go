package relay

import "time"

// Level is how urgent it is that events are sent, since they expire.
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

// LevelOf returns how urgent it is when the oldest unsent event has the given age. ttl is
// the lifetime of event documents; 0 or less: they do not expire.
func LevelOf(oldest, ttl time.Duration) Level {
	switch {
	case ttl <= 0 || oldest < ttl/4:
		return Safe
	case oldest < ttl/2:
		return Warning
	}
	return Critical
}
