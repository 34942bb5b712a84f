// Package httpapi serves aggregates over HTTP: requests, conditional requests, idempotency
// keys, paging, problem documents, the OpenAPI document, and the probes beside it. It is
// written once for aggregates of every kind.
//
// It owns how clients speak to a resource, and nothing of what it is. A [Resource] says that:
// its noun, its routes, what bodies they take ([Body]) and what views they answer with. Each
// route is made by the function of its kind ([Create], [Read], [List], [Change], [Act],
// [Patch], [Delete], [Audit]) from the function that calls the application. The rules of an
// aggregate are the domain's; a Body reads them from there, also for the document.
//
// What a resource costs: a struct and two methods for each body (its members, its check), a
// struct for the view and one for the items of the listing, one short function for each
// route, and the table of them. Some 60 lines serve a resource that can be created, changed
// in one way, read, listed and deleted, see the example.
//
// A request passes, from the outside in:
//
//	observe      request id, trace, time limit, access log, metrics, panics
//	dispatch     path and method to route; 404, 405, 406 as problems;
//	             authentication, scope and rate of the caller
//	capacity     load; a request with a body counts once that has arrived
//	route        decoding, preconditions, the application, the answer
//
// Invariants:
//   - One table, the routes of all resources, is the source of the dispatcher and of the
//     OpenAPI document: what is served is what is documented.
//   - Every answer from 400 upwards is application/problem+json with a stable
//     code (RFC 9457), also those for unknown paths and methods. Only what
//     net/http refuses before a handler runs (a malformed request line,
//     headers over the limit) is answered by net/http itself.
//   - One table (status.go) maps kinds of faults to statuses: what the application refuses
//     is a fault of package fault.
//   - A precondition is never ignored (RFC 9110 §13).
//   - Personal data appears in bodies only: logs, metrics and spans carry routes,
//     statuses, ids and codes only.
//
// Goroutines: [Server.Run] and [Ops.Run] block; each starts the goroutine
// that shuts its http.Server down and waits for it. net/http runs one
// goroutine per connection; Run returns only after they have ended or the
// drain deadline has cut them off.
package httpapi
