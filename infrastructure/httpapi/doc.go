// Package httpapi serves aggregates over HTTP: requests, conditional requests, idempotency
// keys, paging, problem documents, the OpenAPI document, and probes. It is generic over the
// kind of aggregate.
//
// The package implements the protocol; a [Resource] describes the content: its noun, routes,
// request bodies ([Body]) and views. A function per kind of route ([Create], [Read], [List],
// [Change], [Act], [Patch], [Delete], [Audit]) builds the route from a function that calls
// the application. The validation rules belong to the domain; a Body reads them from there,
// also for the OpenAPI document.
//
// The cost of a resource is a struct and two methods for each body (its members, its
// check), a struct for the view and one for the items of the listing, one short function
// for each route, and the table of routes. About 60 lines serve a resource that can be
// created, changed in one way, read, listed and deleted, see the example.
//
// A request passes these layers, from the outside in:
//
//	observe      request id, trace, timeout, access log, metrics, panics
//	dispatch     path and method to route; 404, 405, 406 as problems;
//	             authentication, scope and rate of the caller
//	capacity     limit of requests in flight; a request with a body counts once it arrived
//	route        decoding, preconditions, the application, the answer
//
// Invariants:
//   - The routes of all resources form one table, from which both the dispatcher and the
//     OpenAPI document are built, so that the document cannot differ from the service.
//   - Every answer from 400 upwards is application/problem+json with a stable
//     code (RFC 9457), including unknown paths and methods. The exceptions are requests
//     that net/http refuses before it calls a handler (a malformed request line,
//     headers over the limit).
//   - One table (problem.go) maps kinds of faults to statuses: the application refuses a
//     request with a fault of package fault.
//   - A precondition is never ignored (RFC 9110 §13).
//   - Personal data appears in bodies only: logs, metrics and spans have routes,
//     statuses, ids and codes only.
//
// Below these layers, package limit bounds the connections: which can be displaced, and which
// are refused.
//
// Goroutines: [Server.Run] and [Ops.Run] block; each starts a goroutine that shuts its
// http.Server down, and waits for it. net/http runs one goroutine per connection; Run
// returns only after they have ended or the drain timeout has aborted them.
package httpapi
