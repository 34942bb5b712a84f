// Package relayport declares the ports of a relay: a Store that holds the events and a Broker
// that receives them. The relay service and the operator's use cases take the same ports, so
// each store and each broker builds them once.
//
// The package has no dependency besides domain, application and the change feed processor,
// because every store and every broker imports it.
package relayport
