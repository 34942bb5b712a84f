// Package relay measures the way of an event from the change feed to a consumer. It is
// a stage of the benchmark; see package measure.
//
// # The backlog
//
// A container holds 20,000 contacts with 10 events each (Shape has other sizes):
// each contact's document and events were stored in one transaction through azcosmos.
// A turn gives that backlog to a relay that is wired as in production (wiring.Relay),
// with a lease set and a broker of its own, so the next turn finds the backlog whole
// again: it is refilled without a writer that competes for the processor. Turns
// repeat until a minute of relaying is measured.
//
// The clock of a turn starts when the relay owns its ranges: until then the emulator
// delays the answers of the feed. It stops when the consumer has completed the last
// message, or without a consumer when the broker has accepted it.
//
// # The floors
//
// Read alone: the same feed through azcosmos, one goroutine a range, nothing done with
// it. Send alone: the same messages through azservicebus in the same batches, built
// beforehand, as many in flight as the relay has. Floors and relay take turns.
//
// # The consumer
//
// It is azservicebus itself on a subscription without sessions: two connections with a
// receiver each, peek lock, every message completed by itself and the broker's answer
// awaited. The connections gather what is settled at a time (subscriber.Gather). Each
// receiver must get its messages in the order in which the broker took them; put
// together they are in that order by the broker's sequence numbers, and so the order of
// each key can be checked. A session subscription is not used here because the client
// opens four AMQP sessions and seven links for each session that it accepts
// (internal/amqpLinks.go, initWithoutLocking): with ten events a session that costs
// several times what is to be measured. The consumer kit, which uses sessions, has a
// figure of its own.
//
// Every message of every turn with a consumer is checked by package verify: nothing
// lost, nothing twice, nothing that was never stored, each key in order.
//
// # Processor time
//
// Clients, emulators, relay and consumer share one process and its cores, and CPU is
// the time of them all for one event. The relay's own share is measured with a real
// relay process beside it. Backlogs are relayed with the garbage collector set as in the
// service's relay (wiring.GarbagePercent), floors included, but without its memory limit:
// this process also holds the data of the emulators.
package relay
