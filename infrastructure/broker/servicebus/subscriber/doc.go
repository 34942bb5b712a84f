// Package subscriber consumes events from Service Bus, in order and without duplicates.
//
//	p, err := subscriber.NewSessionProcessor(namespace, subscriber.Subscription("orders", "billing"),
//		func(ctx context.Context, e *consumer.Event) error {
//			return nil // done; DeadLetter(reason, err) or Defer(): final; any other error: retried
//		}, nil)
//	err = p.Run(ctx) // blocks until ctx ends and the handlers have returned; then nil
//
// README.md contains a complete program. The rest of this text explains how the package works.
//
// The relay delivers every event at least once, and the events of a key in order. A relay that was
// suspended may repeat events after its successor has sent newer ones. The broker drops them within the
// duplicate detection window of the topic; later they reach the consumer. The inbox drops them, and
// reports missing events.
//
// A SessionProcessor has one connection. azservicebus opens four AMQP sessions and puts two tokens for
// each broker session that it accepts. This package uses one token, and one link per broker session. An
// AMQP session carries 200 links.
//
//	a session of the broker:
//
//	             granted           key free, permit          queue empty
//	[accepting] --------> [held] ----------------> [handling] ----------> [idle]
//	     ^                                           |   ^                  |  |
//	     | 60 s without a session                    |   +---- a message ---+  |
//	     +--                                         |                         |
//	                     abandoned, SessionMax,      |   SessionIdle, too many |
//	                     drain, settlement failed    v               idle      v
//	                                            [closing: wait for settlements, detach] --> [closed]
//
//	from held, handling and idle: link detached, connection lost, lock not renewed --> the
//	context of the handler ends (ErrLockLost), and then [closing]
//
//	an event, by the verdict of the inbox:
//
//	duplicate, stale -> complete
//	gap              -> wait a few times with the lock held, for the missing event or for others
//	                    of the session that are not after a gap; then as fresh
//	fresh            -> Handler   nil                -> record, complete
//	                              DeadLetter, Defer  -> dead-letter or defer, record; with
//	                                                    SessionOptions.Park park, record, complete
//	                              any other error    -> backoff with the lock held, abandon, close
//
// Only an event that the handler has refused is abandoned, because that counts towards MaxDeliveryCount.
// After a failure of the inbox and a backoff the session is closed, which returns its events uncounted.
//
// Invariants:
//
//   - One event of a session is handled at a time, in the order of the broker. A failed event is
//     redelivered before later events of its session, because closing the link returns those as well.
//   - In a process a key has one owner. A new owner waits until the previous one has released the key,
//     even if the broker has granted the session again.
//   - At most SessionOptions.Sessions sessions are handled at a time, and at most as many are held idle.
//     A session is accepted only while there is a free permit. Further granted sessions wait for a
//     permit in the order of their requests.
//   - The lock of a session that is held for longer than half of its duration is renewed. If the lock is
//     lost, the context of the handler ends.
//   - A handled event is recorded in the inbox before it is completed, so the inbox drops it if it is
//     redelivered after a lost settlement.
//   - Every request has a limit. The broker replies to an accept after a minute at most, so after two
//     accepts without a reply the connection is replaced. A granted session that receives no message
//     may be idle or silent. The renewal of its lock shows which.
//   - The broker confirms completions while later events are handled. A session is closed after all of
//     them are confirmed, or after one has failed.
//   - With SessionOptions.Park, only the holder of a session parks and drains its key: see package handling.
//
// Goroutines, all of which Run waits for:
//
//	Run ---- accept (up to 8) ---- get a connection, accept a session
//	  |         +---- hold, per session ---- handler
//	  |                 +---- read: from the link to the queue; detects the end of the link
//	  |                 +---- renew, after half of the lock duration
//	  +---- settlers, one per unconfirmed completion
//	  +---- with SessionOptions.Park: poll for intents of operators, and accept their sessions
//	  +---- those of the connection (package wire)
//
// After cancellation, running handlers may take DrainTimeout to return, unhandled events are returned to
// the broker, and Run returns nil.
//
// A Processor works in the same way without sessions: it has one link and handles up to
// Options.Concurrency events at a time, without order and therefore without an inbox.
package subscriber
