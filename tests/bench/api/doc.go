// Package api measures what the contacts API costs above the store: updates
// per second and latency of PUT-like requests over HTTP, beside a bare loop
// that does the same read and the same two-document batch through azcosmos.
//
// Both run in one process against one emulator in memory, in turns, so that a
// noisy machine disturbs both alike. The load generator of the API writes
// prepared HTTP/1.1 requests on its own connections: a general HTTP client
// would be measured along.
package api
