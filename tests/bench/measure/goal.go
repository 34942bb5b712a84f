package measure

import "fmt"

// Goal is the line a figure should keep. It judges nothing by itself: a missed
// goal is printed.
type Goal struct {
	Of    Subject `json:"of"`
	Bound Bound   `json:"bound"`
	Limit float64 `json:"limit"`
}

// Subject is what of a figure a goal is about.
type Subject string

// The subjects.
const (
	OfValue Subject = "value"
	OfRatio Subject = "ratio"
)

// Bound is the side on which the limit lies.
type Bound string

// The bounds; the limit itself is within.
const (
	Least Bound = ">="
	Most  Bound = "<="
)

// AtLeast wants a value of limit or more.
func AtLeast(limit float64) Goal { return Goal{OfValue, Least, limit} }

// AtMost wants a value of limit or less.
func AtMost(limit float64) Goal { return Goal{OfValue, Most, limit} }

// RatioAtLeast wants limit times the floor, or more.
func RatioAtLeast(limit float64) Goal { return Goal{OfRatio, Least, limit} }

// RatioAtMost wants limit times the floor, or less.
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

// String is ">= 0.85x" for a ratio and "<= 20" for a value.
func (g Goal) String() string {
	if g.Of == OfRatio {
		return fmt.Sprintf("%s %.3gx", g.Bound, g.Limit)
	}
	return fmt.Sprintf("%s %g", g.Bound, g.Limit)
}
