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
//	breaker       one key or the whole broker? (breaker.go)
//	                Three separate failures of different keys with nothing accepted since:
//	                the broker. Sending is paused, then probed with one key at a time.
//	                Otherwise: that key. The others continue.
//	                       ▼
//	answer        done    waiting (NotBefore, if known)      refused
//	                │         │                                 │
//	lane            │         └──▶ the key and its later    ◀───┤ counted
//	(changefeed)    │              events wait for the retry    │
//	                │                  │ WaitLimit, while others│
//	                │                  │ are accepted           │ MaxAttempts
//	                ▼                  ▼                        ▼
//	checkpoint   passes it        Park: the gate of the key closes, with the event parked
//	                                   │ Closing.Auto               │
//	parked events                      │ later events of the key are parked, by sequence,
//	                                   │ except those sent before (Gate.Progress)
//	                                   ▼                            ▼
//	drainer                       automatically, when the      on an intent: retry,
//	(range owner)                 broker accepts again         retry --from-store, skip
//	                                   │                            ▲
//	                                   └── refused after all ───────┤
//	operator                      feedbox parked ls: key, reason, ──┘
//	                              events; feedbox lag: the backlog and its cause
//
// Each step has one place: the classes are in the publisher's table, the evidence in the
// breaker, retries and counts in the lane, and the order in the gate. No step before the lane
// retries a send, except the client's single retry after a reconnect.
//
// Invariants:
//
//   - Events of one key are sent in the order of the feed. Events of one transaction share an
//     LSN and are sent by sequence. An event that cannot be sent holds back the later events
//     of its key, and no other key.
//   - A message is the same on every attempt: same id, same key, and the stored bytes as its
//     body. The duplicate detection of the broker relies on that.
//   - Only a refusal counts as an attempt. An ambiguous refusal counts until three keys have
//     failed without an accepted message in between.
//   - While a gate is closed, only the Drainer of the range's owner sends events of the key.
//
// Events may be sent twice, and late. A process that was suspended after its last check of the
// context may resume and send events that the next owner has sent already. The broker drops
// them within its duplicate window; after that the consumer's inbox has to.
//
// The package starts no goroutine.
package relay
