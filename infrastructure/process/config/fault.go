package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Fault is one error in the configuration.
type Fault struct {
	Variable string // its full name
	Problem  string // completes the sentence that begins with the variable
	Hint     string // the advice; it may be empty

	noBroker bool // no broker is configured, which only matters to a process that sends
}

// String returns one line.
func (f Fault) String() string {
	if f.Hint == "" {
		return f.Variable + " " + f.Problem
	}
	return f.Variable + " " + f.Problem + ": " + f.Hint
}

// Error holds every fault of a configuration, in the order of the variables
// and unknown names last.
type Error struct{ Faults []Fault }

// Error lists all faults, one per line.
func (e *Error) Error() string {
	var b strings.Builder
	if len(e.Faults) == 1 {
		b.WriteString("wrong configuration:")
	} else {
		fmt.Fprintf(&b, "wrong configuration, %d faults:", len(e.Faults))
	}
	for _, f := range e.Faults {
		b.WriteString("\n  ")
		b.WriteString(f.String())
	}
	return b.String()
}

// report collects faults and sources while loading.
type report struct {
	faults    []Fault
	settings  settings
	order     map[string]int // position of each variable in its struct, from 1
	plaintext []string       // FEEDBOX_PLAINTEXT_HOSTS
}

func (r *report) add(variable, problem, hint string) {
	r.faults = append(r.faults, Fault{Variable: variable, Problem: problem, Hint: hint})
}

// addNoBroker is add for a variable without which no broker is configured.
func (r *report) addNoBroker(variable, problem, hint string) {
	r.faults = append(r.faults, Fault{Variable: variable, Problem: problem, Hint: hint, noBroker: true})
}

// faulty reports whether any of the variables already has a fault, so that no
// second message is built on a value that was not read.
func (r *report) faulty(variables ...string) bool {
	return slices.ContainsFunc(r.faults, func(f Fault) bool { return slices.Contains(variables, f.Variable) })
}

func (r *report) err() error {
	if len(r.faults) == 0 {
		return nil
	}
	position := func(f Fault) int { return cmp.Or(r.order[f.Variable], math.MaxInt) }
	slices.SortStableFunc(r.faults, func(a, b Fault) int { return cmp.Compare(position(a), position(b)) })
	return &Error{Faults: r.faults}
}

// WithoutBroker removes the faults of a missing broker from the error of LoadRelay, so that leases
// and parked events can be inspected without a broker. Faults of a broker that is configured
// remain, because opening it would fail with a worse message.
func WithoutBroker(err error) error {
	wrong, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	kept := slices.DeleteFunc(slices.Clone(wrong.Faults), func(f Fault) bool { return f.noBroker })
	if len(kept) == 0 {
		return nil
	}
	return &Error{Faults: kept}
}

// addUnknown reports names that no process knows, with the nearest known one.
func (r *report) addUnknown(given map[string]string) {
	var known []string
	for _, v := range Variables() {
		known = append(known, v.Name)
		if v.Secret {
			known = append(known, v.Name+fileSuffix)
		}
	}
	var unknown []string
	for name := range given {
		if !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		hint := "remove it"
		if near := nearest(name, known); near != "" {
			hint = "did you mean " + near + "?"
		}
		r.add(name, "is not a known variable", hint)
	}
}

// nearest returns the known name with the smallest edit distance, or "" when
// none is close enough to be a slip of the keyboard.
func nearest(name string, known []string) string {
	best, bestDistance := "", 1+max(2, (len(name)-len(Prefix))/2)
	for _, candidate := range known {
		if d := distance(name, candidate); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
