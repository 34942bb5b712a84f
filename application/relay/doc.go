// Package relay is the use case between the change feed and the broker: it takes
// the changes of a feed range, picks out the domain events and has them published.
//
// What it owns: which document is an event, in what order the events of a key leave,
// what a failure means, and what becomes of events that cannot be sent. What it does not
// own: leases, attempts and checkpoints (package changefeed), the stored shape of
// documents (ports Decoder and ParkedStore) and the broker (port Publisher).
//
//	changes ─▶ decode ─▶ by key, in order ─▶ key parked? ─no─▶ Publisher
//	                                             │yes
//	                                             ▼
//	                                       ParkedStore ─▶ Drainer ─▶ Publisher, then the gate opens
//
// # A failure, from the broker's word to the operator
//
//	broker        accepted │ a condition, another outcome, a lost link, no answer
//	                       ▼
//	publisher     the table of classes (servicebus/errors.go):
//	                Outage     the way to the broker; time cures it
//	                Blocked    its set-up; a person cures it
//	                Refused    the message, for certain or perhaps (Ambiguous)
//	                       ▼
//	judge         is it one key's, or the broker's? (judge.go)
//	                three keys failed, each by itself, and nothing was accepted since:
//	                the broker's. One key at a time is tried, all else waits.
//	                If not: that key's; the others go on.
//	                       ▼
//	verdict       done    waiting (NotBefore, if it is known)    refused
//	                │         │                                     │
//	lane            │         └──▶ the key is held, what follows    │
//	(changefeed)    │              behind it; tried again       ◀───┤ counted
//	                │                  │ WaitLimit, while others    │
//	                │                  │ are accepted               │ MaxAttempts
//	                ▼                  ▼                            ▼
//	checkpoint   passes it        Park: the gate of the key closes, the event behind it
//	                                   │ Closing.Auto               │
//	parked events                      │ followers are parked as they come, by sequence;
//	                                   │ what was sent before (Gate.Progress) is not
//	                                   ▼                            ▼
//	drainer                       by itself, when the broker   on an intent: retry,
//	(owner's lease)               accepts again                retry --from-store, skip
//	                                   │                            ▲
//	                                   └── refused after all ───────┤
//	operator                      feedbox parked ls: key, reason, ──┘
//	                              events; feedbox lag: what waits, and why
//
// Each step is in one place: the classes in the publisher's table, the evidence in the
// judge, the waiting and counting in the lane, the order in the gate. Nothing below the
// lane sends anything twice, but for the client's one try after it has reconnected.
//
// Invariants:
//
//   - Events of one key leave in the order of the feed, those of one transaction, which
//     share an LSN, by sequence. An event that cannot be sent holds back the later events
//     of its key, and no other key.
//   - A message is the same on every attempt: same id, same key, and as body the stored
//     bytes. The broker's duplicate detection rests on that.
//   - Only a refusal spends an attempt. One that fits the set-up as well as the message
//     counts until it has hit three keys without any message being accepted in between.
//   - While a gate is closed only the Drainer of the range's owner sends events of the key.
//
// What is not promised: that no event is sent twice, or late. A sender that stood still
// after the last check of its context may send what its successor has sent already.
// Inside the broker's duplicate window that is dropped; behind it the consumer's inbox
// has to.
//
// The package starts no goroutine.
package relay
