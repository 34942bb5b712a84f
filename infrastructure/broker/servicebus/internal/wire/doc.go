// Package wire is the AMQP connection to a namespace that the publisher and the
// processors of package subscriber work on: address and credential (Namespace), and a
// connection with its tokens, links and requests to the broker's nodes (Conn).
//
// Connections, links and nodes are opened by one of those who use them (package shared), and
// dropped when they have ended, or their token is refused.
//
// A token is put for each path that is claimed, and put anew before it expires.
//
// Goroutines of a Conn, all of them waited for by Close:
//
//	Conn ---- refresh of the tokens
//	     +---- answers of each node that was asked something: $cbs, and $management
//	     +---- gather: writes what was written together
package wire
