// Package relayservice is the relay as a library: one call assembles the change feed
// processor, the handler, the publisher, the parked events with their drainer, metrics and
// log lines, and Run runs them.
//
//	s, err := relayservice.New(store, broker, &relayservice.Options{Processor: "orders"})
//	err = s.Run(ctx) // blocks; nil once ctx ended and everything has stopped
//
// Store and Broker are the ports of any store and any broker; package azure makes those of
// Cosmos DB and Service Bus. The process `feedbox relay` makes the same call.
//
// Run verifies the store and creates nothing in it.
//
// Order of a stop, when ctx ends:
//
//	processor (hands its leases over) ──▶ drainer, gauges, reports, upkeep ──▶ publisher's links
//
// The clients under the ports are the caller's, who closes them after Run. A part that ends
// by itself ends the others, and Run returns its error. Run waits for every goroutine that
// it started.
package relayservice
