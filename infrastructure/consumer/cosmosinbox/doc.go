// Package cosmosinbox stores a consumer's inbox in a Cosmos DB container, so that it survives
// restarts and all processes of a consumer share it.
//
// Each key has one document in its own partition:
//
//	{"id": <consumer>, "partitionKey": <key>, "type": "inbox",
//	 "sequence": 12, "aggregateVersion": 7, "eventId": "d6a5…", "ttl": 2592000}
//
// Take the container of a client of cosmos.NewClient:
//
//	client, err := cosmos.NewClient(cosmos.ClientConfig{Endpoint: endpoint, Credential: credential})
//	container, err := client.NewContainer("billing", "inbox")
//	inbox, err := cosmosinbox.New(container, "mail", nil)
//
// A client that you build yourself needs cosmosfeed.ClientOptions. Otherwise a consumer whose first
// request fails stands still for five minutes, although the store is back after seconds, because
// azcosmos returns the error of its first request that long.
//
// Several consumers may share a container. It may be the data container, because the relay ignores
// documents that are not events. A mark is written only if the ETag of the previous one has not
// changed, so that a process that lost its session cannot move the mark back.
//
// Record writes the mark after the handler's own writes, so a crash in between repeats the event. A
// handler whose effects must not be repeated writes through Inbox.Batch. The batch contains the mark:
// the store commits both or neither, and the later Record finds the mark.
//
//	Batch ── event already marked? ──yes──▶ Execute does nothing
//	  │ no
//	  ▼
//	Execute ──stored──▶ success               (the later Record writes nothing)
//	  │
//	  ├──mark refused: read it; this event or a later one is marked ──▶ success: handled before
//	  │                          otherwise ──▶ error: the event must be redelivered
//	  └──no response, or another operation refused ──▶ error: the event must be redelivered
package cosmosinbox
