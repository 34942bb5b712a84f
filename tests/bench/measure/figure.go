package measure

import (
	"fmt"
	"math"
	"time"
)

// Better is the direction in which a figure improves.
type Better string

// The two directions.
const (
	Higher Better = "higher"
	Lower  Better = "lower"
)

// Figure is one measured value with the floor from the same run.
type Figure struct {
	Stage  string  `json:"stage"` // set by Run.Add
	Name   string  `json:"name"`  // unique in its stage
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Better Better  `json:"better"`

	// Floor is the value for the least code that could do the work, in the same unit; 0
	// means no floor. Ratio is Value / Floor.
	Floor float64 `json:"floor,omitempty"`
	Ratio float64 `json:"ratio,omitempty"`
	// Low and High are the quartiles of the ratio over the rounds of one run; 0 where the
	// ratio was not taken by rounds.
	Low  float64 `json:"ratioLow,omitempty"`
	High float64 `json:"ratioHigh,omitempty"`

	// CPU is the processor time of one operation, in microseconds, of the processes in the
	// figure's note; FloorCPU is the floor's.
	CPU      float64 `json:"cpuMicros,omitempty"`
	FloorCPU float64 `json:"floorCPUMicros,omitempty"`

	Goal *Goal  `json:"goal,omitempty"`
	Note string `json:"note,omitempty"` // conditions that a reader must know, in a few words
}

// Rate is a figure that is better when higher: "events/s".
func Rate(name string, value float64, unit string) Figure {
	return Figure{Name: name, Value: value, Unit: unit, Better: Higher}
}

// Cost is a figure that is better when lower: "µs", "MB".
func Cost(name string, value float64, unit string) Figure {
	return Figure{Name: name, Value: value, Unit: unit, Better: Lower}
}

// Over sets the floor and the ratio to it.
func (f Figure) Over(floor float64) Figure {
	f.Floor = floor
	if floor != 0 {
		f.Ratio = f.Value / floor
	}
	return f
}

// OverRounds sets the floor of a rate to the slowest of floors, which took turns with subject
// (Alternate). The ratio is the median of those of the rounds, because the two sides of one
// round had the same machine, and Low and High are its quartiles.
func (f Figure) OverRounds(subject Sample, floors ...Sample) Figure {
	var ratios []float64
	for i, part := range subject.partsOrSelf() {
		if floor := slowest(floors, i); floor > 0 && !math.IsInf(floor, 1) {
			ratios = append(ratios, part.Rate()/floor)
		}
	}
	for i, floor := range floors {
		if rate := floor.Rate(); i == 0 || rate < f.Floor {
			f.Floor = rate
		}
	}
	if len(ratios) > 0 {
		f.Ratio, f.Low, f.High = quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75)
	}
	return f
}

// Using sets the processor time of one operation and of the floor's (0: none).
func (f Figure) Using(cpu, floor time.Duration) Figure {
	f.CPU, f.FloorCPU = Micros(cpu), Micros(floor)
	return f
}

// Wants sets the goal.
func (f Figure) Wants(g Goal) Figure {
	f.Goal = &g
	return f
}

// Noting sets the note.
func (f Figure) Noting(format string, args ...any) Figure {
	f.Note = fmt.Sprintf(format, args...)
	return f
}

// Met reports whether the goal is met. It returns true without a goal.
func (f Figure) Met() bool { return f.Goal == nil || f.Goal.met(f) }

// Micros is d in microseconds, with fractions.
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Millis is d in milliseconds, with fractions.
func Millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Growth converts the costs of one operation at growing sizes into figures. The cost at the
// first size is the floor of the others, which must be at most 1.5 times as much. The name
// of each figure is name and the label of its point.
func Growth(name, unit string, points ...Point) []Figure {
	figures := make([]Figure, 0, len(points))
	for i, p := range points {
		f := Cost(name+" "+p.At, p.Cost, unit)
		if i > 0 {
			f = f.Over(points[0].Cost).Wants(RatioAtMost(GrowthLimit))
		}
		figures = append(figures, f)
	}
	return figures
}

// GrowthLimit is the allowed cost at the largest size, relative to the smallest size.
const GrowthLimit = 1.5

// Point is the cost of an operation at one size.
type Point struct {
	At   string // the size, for people: "100k"
	Cost float64
}
