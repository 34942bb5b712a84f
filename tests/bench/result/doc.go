// Package result is what a benchmark leaves: the figures of every run, the machine
// they were taken on, a file of both, a table for people, and the comparison of two
// files.
//
// Figures of several runs are summed up by their medians, and their spread is told:
// (largest - smallest) / median. It is that of the ratio to the floor where there is a
// floor, else that of the value. A ratio is said to be repeatable if its spread is
// within 15 % ([Repeatable]).
//
// Package result starts no goroutines. Its values are plain data.
package result
