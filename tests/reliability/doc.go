// Command reliability writes the fault table of tests/faults/README.md from the records that
// fault tests leave (tests/record).
//
//	FEEDBOX_RESULTS=DIR make nightly
//	go run ./tests/reliability -results DIR          # writes the table
//	go run ./tests/reliability -results DIR -check   # fails if it is not that table
//	go run ./tests/reliability -check                # fails if it was edited by hand
//
// The table stands between the lines <!-- faults:begin --> and <!-- faults:end -->,
// with a checksum of itself, by which -check finds an edit where the records are gone.
// Everything else in the file is left as it is.
package main
