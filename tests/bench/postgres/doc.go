// Package postgres measures relays from PostgreSQL to RabbitMQ, ours and those of others, all
// as real processes on one machine:
//
//	feedbox    `feedbox relay`, built from this tree, at default settings
//	packed     the same with FEEDBOX_RABBITMQ_PACK_KEYS
//	packed5000 the same with pages of 5,000 events (FEEDBOX_RELAY_MAX_ITEMS)
//	handtuned  a relay for one table and one purpose, which keeps order (package handtuned)
//	river      a job per event (module peers)
//	watermill  Watermill's forwarder (module peers)
//
// # A turn
//
// First the backlog is stored and the broker gets a new exchange with eight quorum queues,
// each with a consumer in this process. Then the relay starts. The measurement lasts from the
// first to the last message that a consumer receives. Every message is checked: each key must
// have the events 1, 2, 3 and so on. Duplicates and messages out of order are counted.
//
// Processor time is the sum for all processes of the relay, PostgreSQL and RabbitMQ, and for
// the consumers, in the same period, from /proc.
//
// fsync and synchronous_commit are on, messages are persistent, confirms are on.
package postgres
