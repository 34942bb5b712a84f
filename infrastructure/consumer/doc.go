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
//	fresh            -> Handler   nil                -> recorded in the inbox, settled
//	                              DeadLetter, Defer  -> dead-lettered or deferred, then recorded
//	                              any other error    -> retried after a backoff, before
//	                                                    later events of its key
//
// A handled event is recorded before it is settled, because a redelivery after a lost settlement is
// then dropped. A dead-lettered or deferred event is recorded afterwards: if it were recorded first
// and the broker then refused to dead-letter it, the redelivery would be dropped and the event lost.
package consumer
