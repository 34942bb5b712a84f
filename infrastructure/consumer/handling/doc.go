// Package handling contains the parts that consumer kits share: KeyProcessor applies the inbox and
// the handler to the events of a key, Dispatcher keeps the order of keys for brokers without sessions
// and documents the states of an event, Parking keeps the order of keys with refused events, and Runner
// calls the handler with retries and a drain.
//
// # States of a key with Parking
//
//	          refused, or failed Attempts times:
//	          park the event, record it, settle it
//	[open] ------------------------------------------> [parked] <--+ a later event: park it, record
//	  ^                                                 |    |  ^ -+ it, settle it
//	  |                                    retry, skip  |    |  |
//	  |  no parked event left,                          v    |  | refused again: the intent is dropped
//	  +---------------------------------------------- [draining]+
//	     and none parked since                          |    ^
//	                                                    +----+ next parked event: skip it once, or
//	                                                           handle it, record it, remove it
//
// Every transition is done by the owner of the key, between two events of it:
//
//	Service Bus   the process that holds the lock of the session. A process with an intent uses the
//	              session that it holds, or locks the session by its id. If another process has it,
//	              that one finds the intent.
//	RabbitMQ      the active consumer of the queue. No consumer knows that it is the one, so a process
//	              with an intent sends a wake-up to the queue, and the receiver carries it out.
//	SQS           the process that has messages of the group in flight. A wake-up is a message of the
//	              group, so that no other message of the group is delivered before it is deleted.
//
// The owner reads the gate whenever it reads the mark of the key, and remembers it until it has
// settled the events that it has. An intent of an operator only changes the gate's version.
//
// # Crashes
//
// The mark of a key is that of its last event which was handled or parked. A parked event has a mark of its
// own for the handling after it. So parked events and inbox need no common transaction:
//
//	crash between                  the next owner
//	announcement and park of e     finds e announced, parks it without the handler
//	park and record of e           finds e announced, does not park it again, records it
//	record and settle of e         drops e as a duplicate
//	handling and record of e       handles e again, unless the handler stores the mark itself; if it does
//	                               and e was parked, records e
//	record and removal of e        finds the mark of e's own, removes e without the handler
//	skip of e: record and removal  skips e
//	removal and opening            finds no parked event, opens the gate
//
// A skip records e as well, because a crash between park and record of e would otherwise let the broker
// deliver e again after the gate was opened.
//
// # Two owners
//
// A process that is frozen, or whose request is delayed, does not know that its lock has expired. The store of
// parked events cannot see what the inbox has, so each request to park is fenced by the inbox or by the gate:
//
//	refuse e    The owner announces e in the mark of the key (Mark.Parking) before it parks e. The inbox
//	            accepts that only while the mark is the one before e, and a handler cannot store the mark of
//	            an announced event. So e is either handled, or parked by whichever owners come later. A late
//	            request to park may close the gate once more: e has a mark of its own by then, and a retry
//	            removes it without the handler.
//	hold e      The request names the gate that the owner has read (ParkedEvent.Closing). If that was opened
//	            meanwhile, e may have been handled, and the owner reads mark and gate again.
//	handle e    The mark of a parked event has ParkedKey, with which a handler cannot store a mark. So a former
//	            owner that read the gate before it was closed handles nothing after a parked event. The owner
//	            that finds the gate open replaces ParkedKey by OpenKey.
//	skip e      e gets a mark of its own, too.
//
// Not covered, because each needs a second coincidence on the same key, such as another late request or an
// operator at that moment: a request that closes the gate arrives twice, the second time after the key was
// drained, and so does one to hold an event; a former owner is in the handler of a parked event that an operator
// skips; a dead letter is sent again that was announced before; after a gap, two events are announced.
package handling
