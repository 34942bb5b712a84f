// Package httpapi is the contacts API over HTTP: routes, request decoding,
// conditional requests, problem documents, and the probes beside it.
//
// It owns what HTTP clients see and nothing else. Every request becomes one
// command or query sent through the mediator; the rules of a contact are the
// domain's and are read from there, also for the OpenAPI document.
//
// A request passes, from the outside in:
//
//	observe      request id, trace, time limit, access log, metrics, panics
//	dispatch     path and method to route; 404, 405, 406 as problems;
//	             authentication, scope and rate of the caller
//	capacity     load; a request with a body counts once that has arrived
//	route        decoding, preconditions, the command or query, the answer
//
// Invariants:
//   - One table (routes.go) is the source of the dispatcher and of the
//     OpenAPI document: what is served is what is documented.
//   - Every answer from 400 upwards is application/problem+json with a stable
//     code (RFC 9457), also those for unknown paths and methods. Only what
//     net/http refuses before a handler runs (a malformed request line,
//     headers over the limit) is answered by net/http itself.
//   - One table (status.go) maps kinds of faults to statuses.
//   - A precondition is never ignored (RFC 9110 §13).
//   - Personal data appears in bodies only: logs, metrics and spans carry routes,
//     statuses, ids and codes only.
//
// Goroutines: [Server.Run] and [Ops.Run] block; each starts the goroutine
// that shuts its http.Server down and waits for it. net/http runs one
// goroutine per connection; Run returns only after they have ended or the
// drain deadline has cut them off.
package httpapi
