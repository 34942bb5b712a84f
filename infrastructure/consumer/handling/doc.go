// Package handling contains the parts that consumer kits share: KeyProcessor applies the inbox and
// the handler to the events of a key, Dispatcher keeps the order of keys for brokers without sessions
// and documents the states of an event, and Runner calls the handler with retries and a drain.
package handling
