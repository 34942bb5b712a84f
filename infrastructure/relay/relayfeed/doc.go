// Package relayfeed connects the change feed processor (package changefeed) with the relay
// (package relay): it passes changes to the relay and the relay's verdicts to the processor.
package relayfeed
