// Package subscriber receives events from Service Bus: the consumer's side of the
// guarantees that the relay gives.
//
//	p, err := subscriber.NewSessionProcessor(namespace, subscriber.Subscription("orders", "billing"),
//		func(ctx context.Context, e *consumer.Event) error {
//			return nil // done; DeadLetter(reason, err), Defer(): set aside; any other error: again later
//		}, nil)
//	err = p.Run(ctx) // blocks; nil once ctx ended and handlers have finished
//
// README.md has a program that runs; what follows is how it works.
//
// The relay delivers every event at least once, and the events of a key in order. A
// relay that stood still may send events again after its successor has sent newer
// ones; inside the topic's duplicate window the broker drops them, outside of it they
// arrive late. The inbox of this package drops those, and reports what is missing.
//
// A SessionProcessor has one connection. azservicebus opens four AMQP sessions and puts
// two tokens for each session of the broker that it accepts; here all of them are links
// of one AMQP session (a second one behind every 200 links) under one token.
//
//	a session of the broker:
//
//	             granted           key free, permit          queue empty
//	[accepting] --------> [held] ----------------> [handling] ----------> [idle]
//	     ^                                           |   ^                  |  |
//	     | 60 s without a session                    |   +---- a message ---+  |
//	     +--                                         |                         |
//	                     put back, SessionMax, drain |   SessionIdle, too many |
//	                     settlement failed           v                idle     v
//	                                            [closing: settlements are confirmed, detach] --> [gone]
//
//	from held, handling and idle: link detached, connection lost, lock not renewed --> the
//	handler's context ends (ErrLockLost), and then [closing]
//
//	an event, judged by the inbox:
//
//	duplicate, stale -> complete
//	gap              -> put back a few times, then as fresh
//	fresh            -> Handler   nil                -> record, complete
//	                              DeadLetter, Defer  -> record, dead-letter or defer
//	                              any other error    -> wait with the lock held, abandon, close
//
// Invariants:
//
//   - Of a session one event is handled at a time, in the broker's order. An event that
//     fails is handled again before the next one of its session: what came behind it goes
//     back with the link.
//   - In a process no key has two holders: the next one waits until the one before has let
//     go, also if the broker has given the session away meanwhile.
//   - At most Options.Sessions sessions are handled at a time, and at most as many are held
//     idle. Sessions are accepted only while one more could be handled. What was granted
//     beyond that waits its turn; turns are given in the order of asking.
//   - A lock is renewed if its session is held for half of its term, and a handler's
//     context ends if the lock is lost.
//   - An event is recorded in the inbox before it is settled: what is delivered again
//     after a lost settlement is dropped.
//   - Completions are confirmed by the broker, while the next events are handled. A session
//     is closed when all are, and at once after one that failed.
//
// Goroutines, all of them waited for by Run:
//
//	Run ---- accept (up to 8) ---- get a connection, accept a session
//	  |         +---- hold, for each session ---- handler, in turn
//	  |                 +---- read: from the link to the queue; notices its end
//	  |                 +---- renew, after half of a lock's term
//	  +---- settlers, one for each completion that is not confirmed yet
//	  +---- those of the connection (package wire)
//
// On cancellation handlers run to their end, at most DrainTimeout long, events not yet
// handled go back to the broker, and Run returns nil.
//
// A Processor is the same without sessions: one link, up to Options.Concurrency events at
// a time, no order and therefore no inbox.
package subscriber
