// Package postgres measures the way of an event from PostgreSQL to RabbitMQ, beside relays of
// others, all of them real processes on one machine:
//
//	feedbox    `feedbox relay`, built from this tree, at default settings
//	handtuned  a relay for one table and one purpose, which keeps order (package handtuned)
//	river      a job for each event (module peers)
//	watermill  Watermill's forwarder (module peers)
//
// # A turn
//
// The backlog is stored, the broker has a new exchange with eight quorum queues, each with a
// consumer of this process, then the relay is started. The clock runs from the first message
// that a consumer gets to the last. Every message is checked: of each key the events 1, 2, 3
// and so on; what comes twice or out of order is counted.
//
// Processor time is that of all processes of the relay, of PostgreSQL and of RabbitMQ, and of
// the consumers here, between the same two messages, as /proc tells it.
//
// fsync and synchronous_commit are on, messages are persistent, confirms are on.
package postgres
