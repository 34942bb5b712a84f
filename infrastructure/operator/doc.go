// Package operator holds the use cases of the people who run the relay: look at leases and
// lag and steer them, see parked keys and compare them with the store, send events again,
// and examine the surroundings (Diagnose).
//
// An Operator takes the ports of a store and of a broker, of any kind, and connects nothing
// until a use case needs it. What it asks of a relay is noted in the store, and the relay
// carries it out. What only one kind of store or broker has to be examined for, its doctor
// knows: package azure has those of Cosmos DB and Service Bus.
package operator
