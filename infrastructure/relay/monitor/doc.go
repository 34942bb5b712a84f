// Package monitor is what a process tells of itself while it works: metrics, probes and
// the lines of its log that are made of what the change feed processor, the relay and the
// publisher report.
//
// Nothing here changes what is delivered. Observers and hooks are handed to those who do
// the work (package wiring joins them); gauges and the retention report ask at a pace of
// their own. All of it is safe for concurrent use.
package monitor
