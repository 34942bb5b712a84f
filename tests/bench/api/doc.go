// Package api is the benchmark's stage for the contacts API: updates per second and
// latency of requests over HTTP, beside a bare loop that does the same read and the
// same two-document batch through azcosmos. See package measure.
//
// # The sides
//
// The API is wired as in production (wiring.API, its defaults): access log, metrics
// and spans are on, the log goes nowhere. The load generator writes prepared HTTP/1.1
// requests on its own connections, since the cost of a general HTTP client would be measured, too.
//
// The bare loop has neither an HTTP server nor checks: it decodes and encodes with
// encoding/json, and its documents have the members and the length of the API's. So
// the ratio holds all that the API adds, net/http included. How much of that is
// net/http's own is shown by a third side: the loop's body in a handler that decodes
// the request with encoding/json and does nothing else.
//
// All share one process, one emulator over plain HTTP, and the same kind of HTTP
// transport; they take short turns, so that a noisy machine disturbs all of them equally. At
// the end the stored versions are counted: they must be as many as the updates answered.
//
// # The emulator
//
// Everything is measured twice: with an emulator that fsyncs each write before it
// answers, as feedbox-dev runs it and as Cosmos DB promises, and with one in memory.
// The second is cheaper than any real store, so what the API adds shows most there.
package api
