// Package result has the results of a benchmark: the figures of every run and a description
// of the machine, their file, their table, and the comparison of two files.
//
// Several runs are summarized by median and spread, (largest - smallest) / median, of the
// ratio to the floor if there is a floor, otherwise of the value. A ratio is repeatable if
// its spread is within 15 % ([Repeatable]).
//
// Package result starts no goroutines. Its values are plain data.
package result
