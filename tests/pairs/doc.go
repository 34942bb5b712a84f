// Package pairs runs the service on every pair of a store and a broker with the same
// assertions. API and relay are processes; a consumer with an inbox receives the events; the
// operator commands run; the verifier checks the guarantees. With the build tag faults, all
// processes and the third-party servers are killed during the run.
//
// A new store or broker is one more row in stores or brokers.
package pairs
