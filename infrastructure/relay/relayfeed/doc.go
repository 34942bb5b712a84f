// Package relayfeed connects the change feed processor (package changefeed) with the
// relay (package relay): it hands the changes of a feed range to the relay, and what the
// relay says of each event back to the processor.
package relayfeed
