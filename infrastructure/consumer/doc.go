// Package consumer defines what consumers share across brokers: the event, the handler and its
// results, the inbox, and a mux of handlers by action.
//
// A consumer kit receives events from a broker and passes each one to a [Handler]. It handles the
// events of a key in order and one at a time, and different keys in parallel. There is a kit for
// Service Bus (infrastructure/broker/servicebus/subscriber), for RabbitMQ
// (infrastructure/broker/rabbitmq) and for Amazon SQS (infrastructure/broker/sqs). One handler
// works with all of them.
//
// The relay delivers every event at least once. The [Inbox] stores the last handled event of each
// key, so that a kit can drop duplicates:
//
//	duplicate, stale -> settled without the handler
//	gap              -> waits a few times for the missing event, then as fresh
//	fresh, fork      -> Handler   nil                -> recorded in the inbox, settled
//	                              DeadLetter, Defer  -> dead-lettered or deferred, then recorded
//	                              any other error    -> retried after a backoff, before
//	                                                    later events of its key
//
// A handled event is recorded before it is settled, because a redelivery after a lost settlement is
// then dropped. A dead-lettered or deferred event is recorded afterwards: if it were recorded first
// and the broker then refused to dead-letter it, the redelivery would be dropped and the event lost.
//
// An operator can send a dead letter again. Its mark is that of [Event.InboxKey], because the mark of
// its key says that it was handled.
//
// # Parked events
//
// A dead letter leaves its key: later events of the key are handled without it. With Options.Park the
// order of the key is kept instead:
//
//	key   e4        e5       e6  e7           operator: retry            e8
//	      handled   refused  parked after it  e5, e6, e7 to the handler  handled
//	                └ the gate of the key closes          the gate opens ┘
//
// An event is parked if the handler returns [DeadLetter], or has failed Options.Attempts times. Other keys
// are not affected. The broker holds none of the parked events, so they neither expire there nor count
// against its limits. Operators use feedbox parked with --consumer: ls, show, retry, edit, skip. A retry or skip
// is an intent on the gate, which the owner of the key carries out; package handling explains how it is
// found. Gates and parked events are those of the relay (package relay), in one of its stores:
// postgres.ParkedOf, firestore.ParkedOf, or Of of package cosmos/parked.
//
// All processes of a consumer must have the option, because one without it handles later events of parked
// keys. Set it in all of them before an operator retries a key.
//
// With a lasting inbox, a parked event is handled as often as any other: once, except after a crash between
// the end of the handler and the record. Its mark is that of [Event.InboxKey], as for a dead letter sent
// again. An event without a key, or sent again from a dead-letter queue, is dead-lettered and not parked. A handler
// that stores marks in its own transaction must call Mark.MayHandle there; Inbox.Batch and Inbox.Do of our
// inboxes do.
//
// # Policies
//
// Options.Policies sets attempts, pauses, timeout, refused errors and the treatment of refused events by action.
// Actions that need the same system name it as their Dependency and share a circuit breaker, so that an outage
// costs one call at a time and no attempt. An event of a key that is parked is parked too, whatever its own
// policy says, because the order of the key would be lost otherwise.
//
// # Forks
//
// A store that fails over to a standby that lags, or is restored, loses events that a consumer may
// have handled, and gives their sequences to other events:
//
//	handled     ... 45   46   47   48               lost: 46 to 48
//	sent now             46'  47'  48'  49'         46' is a fork, Replaced = 3
//
// The [Mark] of a key has hashes of its last 33 events, so 46' is no repetition of 46. Earlier forks
// are not recognized and are dropped as stale.
//
// By default the kit passes a fork to the handler like the next event, and the mark moves back to it,
// so that 47' and later ones follow in order. We do not drop or dead-letter it: the events of the
// history that the store has now are true, and the lost ones can never be sent again. It is logged and
// counted ("outbox.consumer.forks"). A handler for which that is wrong checks Event.Replaced, which is
// the number of handled events that no longer exist. It may read the aggregate again, or return
// [DeadLetter], after which the later events of the key are handled. A repetition of a lost event that
// arrives after a fork is a fork, too, and the next event of the true history another one.
package consumer
