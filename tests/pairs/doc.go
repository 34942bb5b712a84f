// Package pairs runs the service on every pair of a store and a broker, with the same
// assertions: API and relay as processes, a consumer with an inbox, the verbs, and the verifier of
// the promises over what the consumer got. With the tag faults all of them are killed
// meanwhile, the servers of others too.
//
// A store or broker more is a row more, in stores or brokers.
package pairs
