package measure

import "fmt"

// Goal is a limit for a figure. A missed goal is printed but has no other effect.
type Goal struct {
	Of    Subject `json:"of"`
	Bound Bound   `json:"bound"`
	Limit float64 `json:"limit"`
}

// Subject is the part of a figure that a goal limits.
type Subject string

// The subjects.
const (
	OfValue Subject = "value"
	OfRatio Subject = "ratio"
)

// Bound is the direction of a limit.
type Bound string

// The bounds; both include the limit itself.
const (
	Least Bound = ">="
	Most  Bound = "<="
)

// AtLeast requires a value of limit or more.
func AtLeast(limit float64) Goal { return Goal{OfValue, Least, limit} }

// AtMost requires a value of limit or less.
func AtMost(limit float64) Goal { return Goal{OfValue, Most, limit} }

// RatioAtLeast requires limit times the floor, or more.
func RatioAtLeast(limit float64) Goal { return Goal{OfRatio, Least, limit} }

// RatioAtMost requires limit times the floor, or less.
func RatioAtMost(limit float64) Goal { return Goal{OfRatio, Most, limit} }

func (g Goal) met(f Figure) bool {
	actual := f.Value
	if g.Of == OfRatio {
		actual = f.Ratio
	}
	if g.Bound == Least {
		return actual >= g.Limit
	}
	return actual <= g.Limit
}

// String returns ">= 0.85x" for a ratio and "<= 20" for a value.
func (g Goal) String() string {
	if g.Of == OfRatio {
		return fmt.Sprintf("%s %.3gx", g.Bound, g.Limit)
	}
	return fmt.Sprintf("%s %g", g.Bound, g.Limit)
}
