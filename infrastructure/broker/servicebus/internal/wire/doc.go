// Package wire connects to a namespace by AMQP, for the publisher and for the processors of package
// subscriber. Namespace contains the address and credential. Conn is a connection with its tokens,
// links, and requests to management nodes of the broker.
//
// Connections, links and nodes are opened by the first caller that needs them (package shared). They are
// dropped when they have ended or when their token is refused.
//
// Claim puts a token for a path. The connection refreshes it before it expires.
//
// Goroutines of a Conn, all of which Close waits for:
//
//	Conn ---- refresh of tokens
//	     +---- responses of each node: $cbs and $management
//	     +---- coalesce: writes pending frames together
package wire
