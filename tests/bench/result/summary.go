// Package result has the results of a benchmark: the figures of every run and a description
// of the machine, their file, their table, and the comparison of two files.
//
// Several runs are summarized by median and spread, (largest - smallest) / median, of the
// ratio to the floor if there is a floor, otherwise of the value. A ratio is repeatable if
// its spread is within 15 % ([Repeatable]).
//
// Package result starts no goroutines. Its values are plain data.
package result

import (
	"math"
	"slices"

	"feedbox/tests/bench/measure"
)

// Repeatable is the maximum spread of a repeatable ratio.
const Repeatable = 0.15

// Summary is one figure over all runs, with medians.
type Summary struct {
	measure.Figure
	Runs   int     `json:"runs"`             // number of runs with the figure
	Spread float64 `json:"spread,omitempty"` // of ratio or value; 0 for a single run
	// Wide reports that the figure is a ratio with a spread above Repeatable.
	Wide bool `json:"wide,omitempty"`
}

// Key returns the name of the figure, unique in a file.
func (s Summary) Key() string { return s.Stage + ": " + s.Name }

// compared returns the value for comparisons: the ratio if there is one, because it depends
// least on the machine.
func compared(f measure.Figure) float64 {
	if f.Floor != 0 {
		return f.Ratio
	}
	return f.Value
}

// Summaries returns a summary of every figure, in the order of measurement. Figures of failed
// runs count too.
func (f *File) Summaries() []Summary {
	var out []Summary
	for _, stage := range f.Stages {
		byName := make(map[string][]measure.Figure)
		var names []string
		for _, run := range stage.Runs {
			for _, figure := range run.Figures {
				if byName[figure.Name] == nil {
					names = append(names, figure.Name)
				}
				byName[figure.Name] = append(byName[figure.Name], figure)
			}
		}
		for _, name := range names {
			out = append(out, summarize(byName[name]))
		}
	}
	return out
}

// summarize returns the medians of one figure's runs. Other members, such as the note, come
// from the last run.
func summarize(runs []measure.Figure) Summary {
	over := func(of func(measure.Figure) float64) []float64 {
		values := make([]float64, len(runs))
		for i, f := range runs {
			values[i] = of(f)
		}
		slices.Sort(values)
		return values
	}
	s := Summary{Figure: runs[len(runs)-1], Runs: len(runs)}
	s.Value = median(over(func(f measure.Figure) float64 { return f.Value }))
	s.Floor = median(over(func(f measure.Figure) float64 { return f.Floor }))
	s.Ratio = median(over(func(f measure.Figure) float64 { return f.Ratio }))
	s.Low = median(over(func(f measure.Figure) float64 { return f.Low }))
	s.High = median(over(func(f measure.Figure) float64 { return f.High }))
	s.CPU = median(over(func(f measure.Figure) float64 { return f.CPU }))
	s.FloorCPU = median(over(func(f measure.Figure) float64 { return f.FloorCPU }))
	if sorted := over(compared); len(sorted) > 1 && median(sorted) != 0 {
		s.Spread = (sorted[len(sorted)-1] - sorted[0]) / math.Abs(median(sorted))
	}
	s.Wide = s.Floor != 0 && s.Spread > Repeatable
	return s
}

func median(sorted []float64) float64 {
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
