// Package relay is the use case between the change feed and the broker. It takes the changes
// of a feed range, selects the domain events and publishes them.
//
// The package decides which document is an event, in what order the events of a key are sent,
// what a failure means, and what happens to events that cannot be sent. It does not handle
// leases, attempts and checkpoints (package changefeed), the stored format of documents (ports
// Decoder and ParkedStore) and the broker (port Publisher).
//
//	changes ─▶ decode ─▶ by key, in order ─▶ key parked? ─no─▶ Publisher
//	                                             │yes
//	                                             ▼
//	                                       ParkedStore ─▶ Drainer ─▶ Publisher, then the gate opens
//
// # The path of a failure from the broker to the operator
//
//	broker        accepted │ a condition, another outcome, a lost link, no answer
//	                       ▼
//	publisher     the table of classes (errors.go of each broker's package):
//	                Outage     the broker or the way to it; it recovers without help
//	                Blocked    the broker's set-up; an operator must fix it
//	                Refused    the message, for certain or perhaps (Ambiguous)
//	                       ▼
//	sender        one for relay and drainer: publisher, breaker, probes (publish.go)
//	breaker       one key or the whole broker? (breaker.go)
//	                Three separate failures of different keys with nothing accepted since:
//	                the broker. Sending is paused, then probed with one key at a time.
//	                Otherwise: that key. The others continue. Such a key is blamed once other
//	                keys were accepted after its failure began.
//	                A broker with shards (Options.Shards) has one breaker for each of them: keys
//	                of one shard say nothing about another.
//	                       ▼
//	answer        done    waiting, not blamed     waiting, blamed       refused
//	                │     (NotBefore, if known)        │                   │
//	lane            │         │                        │ counted           │ counted
//	(changefeed)    │         └──▶ the key and its later events wait ◀─────┤
//	                │              for the retry       │ WaitLimit         │ MaxAttempts
//	                ▼                                  ▼                   ▼
//	checkpoint   passes it               Park: the gate of the key closes, with the event parked
//	                                          │
//	parked events                             │ later events of the key are parked, except
//	                                          │ those up to Gate.Progress
//	                                          ▼
//	drainer       automatically (Closing.Auto), or on an intent: retry, retry --from-store, skip
//	(range owner)                             ▲ │
//	operator      feedbox parked ls: key, ────┘ └── refused after all: waits for an intent
//	              reason, events; feedbox lag: the backlog and its cause
//
// Each step has one place: the classes are in the publisher's table, the evidence in the
// breaker, retries and counts in the lane, and the order in the gate. No step before the lane
// retries a send, except the client's single retry after a reconnect.
//
// # The progress of a key
//
//	feed of a key    e1   e2 │ e3   e4   e5 │ e6
//	                 sent    │ parked       │ not read yet
//	                         closed by e3   Gate.Progress = place of e5
//
// The events of a key are handled in the order of the feed, and each is parked only after all
// earlier ones were sent or parked. So the place of the last parked event is the progress of
// the key: an event up to there is sent, skipped or parked, whoever reads it again. The gate
// keeps it, and no relay needs a memory of it. A place is the container's history, the LSN, and
// the ordinal in the transaction (without one the sequence, then the id; an event that cannot be
// read and has neither follows the one before it, see page.arrange). It covers only events
// of the same history, and none that were committed later, because a restored container or
// another region may use the same LSNs again for new events.
//
// In doubt an event is parked and not dropped, so the worst case is a second send:
//
//   - A gate of an earlier version has no history, and covers only events of a feed without one.
//   - A dead letter whose failure Handle did not report (a panic, a timeout of the whole call)
//     has no progress, because it need not be the first of its transaction.
//   - Events without a key come from many ranges, so their gate has no progress.
//
// A rewind does not send the events up to the progress of a closed gate again. A restart does,
// because it begins a new history.
//
// Invariants:
//
//   - Events of one key are sent in the order of the feed. Events of one transaction share an
//     LSN and are sent by ordinal, without one by sequence, else by id, because the feed returns
//     them in any order. An event that cannot be sent holds back the later events of its key,
//     and no other key.
//   - A message is the same on every attempt: same id, same key, and the stored bytes as its
//     body. The duplicate detection of the broker relies on that.
//   - Only a refusal counts as an attempt. An ambiguous refusal counts until three keys have
//     failed without an accepted message in between.
//   - While a gate is closed, only the Drainer of the range's owner sends events of the key.
//   - An event waits without a limit until other keys of its shard were accepted after its key's
//     failure began. So an outage of the broker, or of one shard, parks nothing.
//
// Events may be sent twice, and late. A process that was suspended after its last check of the
// context may resume and send events that the next owner has sent already. The broker drops
// them within its duplicate window; after that the consumer's inbox has to.
//
// # Goroutines
//
// Park starts none. Handle starts one for each shard if there are several, and waits for them.
// Drainer.Run starts one for each key that it drains, at most
// drainedKeys at a time, and waits for them before it returns.
package relay
