// Package relayservice is the relay as a library. New assembles the change feed processor, its
// handler, the publisher, the drainer of parked events, metrics and logs; Run runs them.
//
//	s, err := relayservice.New(store, broker, &relayservice.Options{Processor: "orders"})
//	err = s.Run(ctx) // blocks until ctx ends and everything has stopped, then returns nil
//
// Each store and each broker builds its port (package relayport): cosmosrelay.NewStore,
// postgres.NewRelayStore, firestore.NewRelayStore, servicebus.NewRelayBroker,
// rabbitmq.NewRelayBroker and sqs.NewRelayBroker. The process `feedbox relay` makes the same
// calls.
//
// Run verifies the store and creates nothing in it.
//
// Order of a stop, when ctx ends:
//
//	processor (releases its leases) ──▶ drainer, gauges, reports, upkeep ──▶ publisher's links
//
// The clients below the ports belong to the caller, who closes them after Run. A part that
// ends on its own ends the others, because a relay without it would lose its promises
// silently; Run then returns its error. Run waits for every goroutine that it started.
package relayservice
