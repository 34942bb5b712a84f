// Package relayservice is the relay as a library: one call assembles the change feed
// processor, the handler, the publisher, the parked events with their drainer, metrics and
// log lines, and Run runs them.
//
//	s, err := relayservice.New(store, broker, &relayservice.Options{Database: "shop", Topic: "orders"})
//	err = s.Run(ctx) // blocks; nil once ctx ended and everything has stopped
//
// The process `feedbox relay` makes the same call.
//
// Containers: the data, partitioned by its own key, with a default TTL of -1; leases by /id;
// parked events by /partitionKey, the latter two without a default TTL. Run verifies them
// and creates none. Topic: duplicate detection on, its subscriptions with sessions.
//
// Order of a stop, when ctx ends:
//
//	processor (hands its leases over) ──▶ drainer, gauges, reports ──▶ publisher's links
//
// The clients are the caller's, who closes them after Run. A part that ends by itself ends
// the others, and Run returns its error. Run waits for every goroutine that it started.
package relayservice
