// Package result holds the results of a benchmark: the figures of every run and the
// machine they were measured on, a file of both, a table for people, and the comparison
// of two files.
//
// Figures of several runs are summarised by their median and their spread,
// (largest - smallest) / median: that of the ratio to the floor where there is a floor,
// else that of the value. A ratio is said to be repeatable if its spread is
// within 15 % ([Repeatable]).
//
// Package result starts no goroutines. Its values are plain data.
package result
