// Package push sends events to an HTTP endpoint as CloudEvents 1.0, in the order of their keys. It is
// for consumers in languages without a kit. [Sender.Handle] is a handler for any consumer kit, and
// [Sender.Documents] sends documents of the change feed of any container.
//
// Each request has a deadline, redirects are not followed, and at most 64 KB of an answer are read.
// The status of the answer decides:
//
//	2xx                            done
//	409, 410, 422                  refused: the event is dead-lettered or parked by the kit
//	429, 503 with Retry-After      every key waits for that time, at most an hour
//	other 5xx, 408, 425, timeout   the key is held and retried with a backoff
//	any other                      held as well, and logged as an error of the set-up
//
// The last line includes 400, 401, 403, 404, 413 and redirects. A wrong URL, an expired secret or a
// proxy causes them for every event. If they refused events, such a mistake would dead-letter the
// whole backlog within minutes. A receiver that answers 400 for a single bad event can be given by
// Options.Refused.
//
// # Order
//
// A kit calls the handler for one event of a key at a time, so a held event holds the later events of
// its key, while other keys continue. A request whose answer was lost is sent again with the same id.
// The receiver may still be working on the first one, so it must compare the attribute keysequence, or
// the id, with the last one that it has handled.
//
// # Circuit breaker
//
// Three keys that failed, with nothing accepted in between, show that the receiver is down:
//
//	           three keys failed, or Retry-After
//	[closed: sending] ---------------------------> [open: paused until t]
//	    ^                                                |  after t:
//	    |                 failed: a later t              v  one key is sent
//	    +------ an event accepted or refused ---- [half-open: probing]
//
// The breaker of package application/relay has the same rule, but judges pages with batches of several
// keys and the errors of brokers, which do not exist here.
//
// Handle does not return while an event is held. Otherwise Service Bus would count a delivery for each
// failure and dead-letter the event after ten. A held event occupies one of the events in parallel of
// its kit, but none of Options.Requests. With Options.Attempts, failures count if the receiver has
// accepted or refused events of other keys meanwhile.
//
// # Policies
//
// Options.Policies are the kit's policies by action. The sender applies attempts, pauses, timeout and refused
// statuses, and the kit the treatment of refused events (Sender.Treatments). The receiver is the only
// dependency of all actions. We do not use Policy.Dependency for it: that breaker opens after one failure, so
// one event that always fails would pause all keys, and it does not read Retry-After.
package push
