package result

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"feedbox/tests/bench/measure"
)

// Table writes one line per figure: the medians of all runs, with the spread if there is more
// than one run.
func (f *File) Table(w io.Writer) error {
	summaries := f.Summaries()
	spreads := false
	for _, s := range summaries {
		spreads = spreads || s.Runs > 1
	}
	fmt.Fprintf(w, "%s\n", f.Machine)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	stage, missed := "", 0
	for _, s := range summaries {
		if s.Stage != stage {
			stage = s.Stage
			row(t, spreads, "\n"+strings.ToUpper(stage), "value", "unit", "floor", "ratio", "goal", "CPU/op", "floor's", "spread", "")
		}
		if !s.Met() {
			missed++
		}
		row(t, spreads, s.Name, number(s.Value), s.Unit, ifAny(s.Floor), ratio(s.Figure), goal(s.Figure), micros(s.CPU), micros(s.FloorCPU), spread(s), s.Note)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nFigures: %d. Goals missed: %d. %s\n", len(summaries), missed, f.repeatability(summaries))
	for _, failure := range f.Failures() {
		fmt.Fprintf(w, "FAILED %s\n", failure)
	}
	return nil
}

// repeatability returns a statement on the spread of the ratios.
func (f *File) repeatability(summaries []Summary) string {
	ratios, within, widest := 0, 0, Summary{}
	for _, s := range summaries {
		if s.Runs < 2 || s.Floor == 0 {
			continue
		}
		ratios++
		if !s.Wide {
			within++
		}
		if s.Spread >= widest.Spread {
			widest = s
		}
	}
	if ratios == 0 {
		return "Run with -runs 3 to see how far they can be repeated."
	}
	return fmt.Sprintf("%d of %d ratios repeat within %.0f %%; the widest spread is %.0f %% (%s).", within, ratios, 100*Repeatable, 100*widest.Spread, widest.Key())
}

// Table writes the changed figures and the number of unchanged ones.
func (c Comparison) Table(w io.Writer) error {
	fmt.Fprintln(w, Rule)
	if !c.SameMachine {
		fmt.Fprintln(w, "The machines differ: figures without a floor are not compared.")
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nFIGURE\told\tnew\tworse by\tnoise\t")
	steady := 0
	for _, change := range c.Changes {
		switch change.Verdict {
		case Steady:
			steady++
		case Added, Missing, Uncertain:
			fmt.Fprintf(t, "%s\t%s\t%s\t\t\t%s\n", change.Key, shown(change.Old), shown(change.New), change.Verdict)
		case Improved, Regressed:
			fmt.Fprintf(t, "%s\t%s\t%s\t%+.0f %%\t%.0f %%\t%s\n", change.Key, shown(change.Old), shown(change.New), 100*change.Worse, 100*change.Noise, change.Verdict)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nSteady within noise: %d.\n", steady)
	for _, failure := range c.Failures {
		fmt.Fprintf(w, "FAILED %s\n", failure)
	}
	return nil
}

// shown returns the compared value of a figure.
func shown(s *Summary) string {
	switch {
	case s == nil:
		return ""
	case s.Floor != 0:
		return number(s.Ratio) + "x"
	default:
		return number(s.Value) + " " + s.Unit
	}
}

func row(w io.Writer, spreads bool, name, value, unit, floor, ratio, goal, cpu, floorCPU, spread, note string) {
	cells := []string{name, value, unit, floor, ratio, goal, cpu, floorCPU}
	if spreads {
		cells = append(cells, spread)
	}
	fmt.Fprintln(w, strings.Join(append(cells, note), "\t"))
}

// number formats v with three significant digits, and with all digits before the point.
func number(v float64) string {
	if v == 0 {
		return "0"
	}
	before := int(math.Floor(math.Log10(math.Abs(v)))) + 1
	return strconv.FormatFloat(v, 'f', max(0, 3-max(1, before)), 64)
}

func ifAny(v float64) string {
	if v == 0 {
		return ""
	}
	return number(v)
}

func micros(v float64) string {
	if v == 0 {
		return ""
	}
	return number(v) + " µs"
}

func ratio(f measure.Figure) string {
	if f.Floor == 0 {
		return ""
	}
	if f.High == 0 {
		return fmt.Sprintf("%.2f", f.Ratio)
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)", f.Ratio, f.Low, f.High)
}

func goal(f measure.Figure) string {
	switch {
	case f.Goal == nil:
		return ""
	case f.Met():
		return f.Goal.String() + " met"
	default:
		return f.Goal.String() + " MISSED"
	}
}

func spread(s Summary) string {
	switch {
	case s.Runs < 2:
		return ""
	case s.Wide:
		return fmt.Sprintf("%.0f %% WIDE", 100*s.Spread)
	default:
		return fmt.Sprintf("%.0f %%", 100*s.Spread)
	}
}
