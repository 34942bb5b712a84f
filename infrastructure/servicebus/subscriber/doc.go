// Package subscriber receives the events of a session subscription: the consumer's
// side of the guarantees that the relay gives.
//
//	s, err := subscriber.New(bus, "orders", "billing", func(ctx context.Context, e *subscriber.Event) error {
//		return nil // done; DeadLetter(reason, err): set aside; any other error: again later
//	}, nil)
//	err = s.Run(ctx) // blocks; nil once ctx ended and handlers have finished
//
// README.md has a program that runs; what follows is how it works.
//
// The relay delivers every event at least once, and the events of a key in order. A
// relay that stood still may send events again after its successor has sent newer
// ones; inside the topic's duplicate window the broker drops them, outside of it they
// arrive late. The inbox of this package drops those, and reports what is missing.
//
//	           accept                 receive
//	[waiting] -------> [session held] -------> [event] -- judged by the inbox:
//	    ^                  ^   |                  |  duplicate, stale -> complete
//	    |  idle, too long, |   |                  |  gap   -> put back a few times, then as fresh
//	    |  put back, lost  |   |                  |  fresh -> Handler
//	    +------ close -----+---+                  |     nil          -> record, complete
//	                       ^                      |     DeadLetter   -> record, dead-letter
//	                       +----------------------+     other error  -> abandon, wait, close
//
// Invariants:
//
//   - Of a session one event is handled at a time, in the broker's order. An event that
//     fails is handled again before the next one of its session.
//   - At most Options.Sessions sessions are held; a lock is renewed while its session is
//     held, and a handler's context ends if the lock is lost.
//   - An event is recorded in the inbox before it is settled: what is delivered again
//     after a lost settlement is dropped.
//
// Goroutines: Run starts one worker for each session it may hold; a worker that holds
// a session starts one more that renews the lock. Run waits for all of them. On
// cancellation handlers run to their end, at most Options.DrainTimeout long, events not
// yet handled go back to the broker, and Run returns nil.
package subscriber
