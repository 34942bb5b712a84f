// Package pairs runs the service on every pair of a store and a broker with the same
// assertions. API and relay are processes; a consumer with an inbox receives the events; the
// operator commands run; the verifier checks the guarantees. Three pairs run in go test ./...;
// with the build tag faults (make faults) all pairs run, and all processes and the third-party
// servers are killed meanwhile.
//
// A new store or broker is one more row in stores or brokers.
package pairs
