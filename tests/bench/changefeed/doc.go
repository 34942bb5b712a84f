// Package changefeed measures what the change feed processor costs: the processor
// time of a document beside a loop that only reads the feed, and how it grows with
// ranges and hosts.
//
//	go test -run - -bench . -benchtime 1x -count 3 ./tests/bench/changefeed
//
// Figures in virtual time (balancing, take-over, idle requests, lanes, redelivery)
// are tests of package changefeed.
package changefeed
