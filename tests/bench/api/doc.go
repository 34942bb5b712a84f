// Package api is the benchmark's stage for the contacts API: updates per second and latency
// of requests over HTTP, compared with a bare loop that makes the same read and the same
// two-document batch through azcosmos. See package measure.
//
// # The sides
//
// The API is wired as in production (wiring.API with defaults): access log, metrics and
// spans are on, and the log is discarded. The load generator writes prepared HTTP/1.1
// requests on its own connections, because a general HTTP client would add to the result.
//
// The bare loop has neither an HTTP server nor checks. It uses encoding/json, and its
// documents have the members and the length of the API's. So the ratio contains everything
// that the API adds, including net/http. A third side shows the share of net/http: the
// loop's body in a handler that only decodes the request with encoding/json.
//
// All sides share one process, one emulator over plain HTTP, and the same kind of HTTP
// transport. They take short turns, so that a noisy machine disturbs all of them equally. At
// the end the stored versions must match the number of answered updates.
//
// # The emulator
//
// Everything is measured twice: with an emulator that fsyncs each write before it answers,
// as feedbox-dev runs it and as Cosmos DB guarantees, and with one in memory. The second is
// cheaper than any real store, so the share of the API is highest there.
package api
