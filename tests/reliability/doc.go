// Command reliability writes the fault table of tests/faults/README.md from the records of
// the fault tests (tests/record).
//
//	FEEDBOX_RESULTS=DIR make nightly
//	go run ./tests/reliability -results DIR          # writes the table
//	go run ./tests/reliability -results DIR -check   # fails if it is not that table
//	go run ./tests/reliability -check                # fails if it was edited by hand
//
// The table is between the lines <!-- faults:begin --> and <!-- faults:end -->. It contains
// its own checksum, so that -check detects an edit even without the records. The rest of
// the file is not changed.
package main
