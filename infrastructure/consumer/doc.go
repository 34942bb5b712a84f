// Package consumer is what consumers of events share, whatever the broker: the event, the
// handler and what it may answer, the inbox, handlers by action.
//
// A kit receives from a broker and gives each event to a [Handler]: those of a key in their
// order, one at a time, those of different keys beside each other. There is one for Service
// Bus (infrastructure/broker/servicebus/subscriber), one for RabbitMQ (infrastructure/broker/rabbitmq) and
// one for Amazon SQS (infrastructure/broker/sqs); a handler serves all of them.
//
// The relay delivers every event at least once. An event that comes again is dropped by the
// [Inbox], which remembers for each key how far its history was handled:
//
//	duplicate, stale -> settled without the handler
//	gap              -> waits a few times for what is missing, then as fresh
//	fresh            -> Handler   nil                -> marked in the inbox, settled
//	                              DeadLetter, Defer  -> set aside, then marked
//	                              any other error    -> handled again after a pause, before
//	                                                    what follows it in its key
//
// A handled event is marked before the broker is told: if it comes again because the broker
// was not told, it is dropped. One that is set aside is marked after that: marked before and
// then not set aside, it would be dropped and be nowhere.
package consumer
