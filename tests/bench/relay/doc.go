// Package relay measures the path of an event from the change feed to a consumer. It is a
// stage of the benchmark; see package measure.
//
// # The backlog
//
// A container holds 20,000 contacts with 10 events each (Shape has other sizes). Document and
// events of each contact were stored in one transaction through azcosmos. In a turn, a relay
// that is wired as in production (wiring.Relay) sends that backlog with a new lease set to a
// new broker. So each turn finds the whole backlog, without a writer that would compete for
// the processor. Turns repeat until a minute of relaying is measured.
//
// A turn starts when the relay owns its ranges; until then the emulator delays the answers of
// the feed. It ends when the consumer has completed the last message, or without a consumer
// when the broker has accepted it.
//
// # The floors
//
// Read alone: the same feed through azcosmos, one goroutine per range, without handling the
// documents. Send alone: the same messages through azservicebus in the same batches, built
// beforehand, with as many in flight as in the relay. Floors and relay take turns.
//
// # The consumer
//
// The consumer is the consumer kit on two connections, without sessions and, in one variant,
// with them. Without sessions, the order of each key is checked by the broker's sequence numbers,
// with sessions by the order of handling.
//
// Package verify checks every message of every turn with a consumer: none is lost, repeated or
// unknown, and each key is in order.
//
// # Processor time
//
// Clients, emulators, relay and consumer share one process and its cores, and CPU is their
// total time per event. The relay's own share is measured with a separate relay process.
// Backlogs and floors run with the garbage collection setting of the service's relay
// (wiring.GarbagePercent), but without its memory limit, because this process also holds the
// data of the emulators.
package relay
