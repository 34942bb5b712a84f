package result

import (
	"fmt"
	"math"

	"feedbox/tests/bench/measure"
)

// The rule of Compare.
const (
	// leastNoise is the minimum change that counts.
	leastNoise = 0.05
	// singleRun is the assumed spread of a figure that was measured once.
	singleRun = Repeatable
)

// Rule explains when a figure counts as changed.
const Rule = "A figure has changed if its median differs by more than the larger of its spreads in the two files, " +
	"and by more than 5 %. The spread of a single run is taken as 15 %. Figures with a floor are compared by their ratio to it; " +
	"those without are compared by value, and only on the same kind of machine."

// Verdict is the result of the comparison of a figure.
type Verdict string

// The verdicts.
const (
	Steady    Verdict = "steady"
	Improved  Verdict = "improved"
	Regressed Verdict = "REGRESSED"
	Missing   Verdict = "missing"  // only in the old file
	Added     Verdict = "new"      // only in the new file
	Uncertain Verdict = "machines" // it has no floor and the machines differ
)

// Change is one figure in two files.
type Change struct {
	Key      string
	Old, New *Summary // nil if the figure is missing
	// Worse is the change of the median for the worse, as a fraction of the old one; negative
	// is better.
	Worse float64
	// Noise is the limit that Worse must exceed.
	Noise   float64
	Verdict Verdict
}

// Comparison is the outcome of Compare.
type Comparison struct {
	Changes     []Change
	SameMachine bool
	// Failures lists failed runs of the new file, in stages without failures in the old one.
	Failures []string
}

// Regressed reports whether any figure got worse beyond noise, or any stage fails now.
func (c Comparison) Regressed() bool {
	if len(c.Failures) > 0 {
		return true
	}
	for _, change := range c.Changes {
		if change.Verdict == Regressed {
			return true
		}
	}
	return false
}

// Compare compares a file with an older one by Rule. Files with different settings cannot be
// compared.
func Compare(old, now *File) (Comparison, error) {
	if old.Quick != now.Quick || old.Growth != now.Growth {
		return Comparison{}, fmt.Errorf("the files were measured differently: quick %t and %t, growth %t and %t", old.Quick, now.Quick, old.Growth, now.Growth)
	}
	c := Comparison{SameMachine: old.Machine.Same(now.Machine)}
	if len(old.Failures()) == 0 {
		c.Failures = now.Failures()
	}
	before := make(map[string]*Summary)
	summaries := old.Summaries()
	for i := range summaries {
		before[summaries[i].Key()] = &summaries[i]
	}
	for _, s := range now.Summaries() {
		c.Changes = append(c.Changes, change(before[s.Key()], &s, c.SameMachine))
		delete(before, s.Key())
	}
	for _, s := range summaries {
		if _, left := before[s.Key()]; left {
			c.Changes = append(c.Changes, Change{Key: s.Key(), Old: &s, Verdict: Missing})
		}
	}
	return c, nil
}

func change(old, now *Summary, sameMachine bool) Change {
	c := Change{Key: now.Key(), Old: old, New: now}
	if old == nil {
		c.Verdict = Added
		return c
	}
	c.Noise = max(leastNoise, noise(*old), noise(*now))
	from, to := compared(old.Figure), compared(now.Figure)
	switch {
	case (old.Floor == 0) != (now.Floor == 0), old.Floor == 0 && !sameMachine:
		c.Verdict = Uncertain
		return c
	case from != 0:
		c.Worse = (to - from) / math.Abs(from)
	}
	if now.Better == measure.Higher {
		c.Worse = -c.Worse
	}
	switch {
	case c.Worse > c.Noise:
		c.Verdict = Regressed
	case c.Worse < -c.Noise:
		c.Verdict = Improved
	default:
		c.Verdict = Steady
	}
	return c
}

func noise(s Summary) float64 {
	if s.Runs < 2 {
		return singleRun
	}
	return s.Spread
}
