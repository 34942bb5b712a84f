// Package wiring is the composition root: the only fx modules of the service.
//
// API and Relay are the two processes; Operator serves the operator commands. Each takes its
// configuration and Params, so that cmd/feedbox (one process each) and cmd/feedbox-dev (both
// in one, on the emulators) run the same code. The only decision here is the kind of store
// and broker (store.go, broker.go); no other package depends on the kind. Apart from that,
// the package calls constructors, and starts and stops services that block in Run. Its files
// form layers, and a file uses only its own layer and those below it. tests/arch checks both
// rules.
//
// Stop order: first the services that accept work (API server, processor), then clients and
// telemetry, and the ops server last, so that probes answer while the process drains. Each
// hook reserves time of the stop timeout for the later ones. An interrupted start stops the
// started services in the same way (stops.go).
package wiring
