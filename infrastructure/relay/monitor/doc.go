// Package monitor turns the reports of the change feed processor, the relay and the publisher
// into metrics, probes and log lines.
//
// Nothing here affects delivery. The relay service installs the observers and hooks; gauges
// and the retention report poll at their own interval, so that a scraper cannot load the
// store. Everything is safe for concurrent use.
package monitor
