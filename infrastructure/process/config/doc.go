// Package config reads the settings of the API and the relay from environment
// variables.
//
// It owns the names, defaults, units and limits of every FEEDBOX_ variable:
// one tagged struct per process ([API], [Relay]) is the single source from
// which loading, [Variables], documentation and deployment checks are derived.
// The tag doc of a field describes it; a field has a comment only if there is
// more to say.
//
// Invariants:
//   - Loading reports every fault at once, never only the first: missing,
//     unparsable, out of range, contradictory and unknown names.
//   - A FEEDBOX_ name that no process knows is a fault, because a misspelt
//     setting that is silently ignored is worse than a refused start. Names
//     beginning with FEEDBOX_TEST_ are reserved for tests and ignored, as are
//     those that Kubernetes makes for services named feedbox-...
//   - A secret is never printed: [Secret] masks itself in fmt, slog, JSON and
//     in fault messages.
//   - An empty value means "not set".
//
// The environment is an argument, so that nothing here reads the process's
// own. The package starts no goroutines.
package config
