// Package wiring is the composition root: the only fx modules of the service.
//
// API and Relay are the two processes, Operator is for the commands of people. Each takes
// its configuration and Params, so that cmd/feedbox (one process each) and cmd/feedbox-dev
// (both in one, on the emulators) run the same code. One decision is taken here: which kind
// of store and of broker serve (store.go, broker.go); nothing outside asks for the kind.
// Else constructors are called, and what blocks in Run is started and stopped. Its files are
// rooms whose arrows point down; tests/arch has both rules.
//
// Order of a stop: what takes in work first (API server, processor), then the
// clients, telemetry, and the ops server last, so that probes answer while the
// process drains. Each hook leaves the later ones their part of the stop time-out. A
// start that is interrupted stops what it had started in the same way (stops.go).
package wiring
