// Package limit keeps one client of a server from locking out the others. All HTTP listeners of
// the project use it: API, probes, operations page and emulators.
//
// [Serve] runs an http.Server with all limits below. [Listen] has the limits of connections
// only, for servers that need another http.Server or another protocol.
//
// # Connections
//
//	           accepted ──► at the limit, and nothing to displace: refused
//	              │
//	              ▼      head of a request              Protect
//	      ┌───► idle ───────────────────► receiving ───────────────► working
//	      │       │                         │   │                      │   │
//	      └───────┼───── answered ◄─────────┼───┴──────────────────────┼───┘
//	              │ displaced               │ displaced                │ displaced, if the client
//	              ▼                         ▼                          ▼ took no byte for 1 s
//	            reset                     reset                      reset
//
//	any state: the client takes no byte of an answer for Progress (5 s): reset
//
// A connection belongs to a share: that of its address, and after [Identify] that of its
// caller. At the limit a new connection displaces one of the largest share, because those who
// hold most must not refuse the others. Within the share, clients that have taken no byte for 1 s
// come first, then connections without a caller, then idle ones; among equals the oldest state
// decides. Of more than 128 connections a random 128 are compared. So a caller keeps the connections
// of its share whatever the others do, and no part of the limit is reserved for callers that do
// not come.
//
// A request is protected once its handling begins, because a reset would then leave its outcome
// unknown. Before that, nothing has happened: a displaced client can repeat it. The number of
// protected requests must have a limit of its own below that of the connections ([Places]).
//
// Pipelined requests of a caller are handled in turn. A connection without a caller is closed after 16
// requests, and after the first one whose successor had been sent before it was answered: the work of
// thousands of such connections would delay all others. The buffers of the kernel are bounded in both
// directions, so a client that does not read, or sends ahead, costs Buffer bytes for each.
//
// # Addresses behind a proxy
//
// An address is that of the TCP connection. X-Forwarded-For is never read: any client can send
// it, and a list of trusted proxies that is wrong gives an attacker as many shares as it likes.
// Behind a proxy all clients have the address of the proxy. Therefore an address has no bound
// of its own by default (PerAddress): it would be one for all clients. Their share is divided as
// soon as they are authenticated, and connections without a caller are displaced first. Set
// PerAddress only where clients connect directly.
//
// # Other limits
//
// [Places] bounds work in progress, and [Rates] the rate of requests. [Sampler] bounds the log
// lines about refusals and counts those it leaves out.
//
// Goroutines: Serve starts one that shuts the server down, and waits for it.
package limit
