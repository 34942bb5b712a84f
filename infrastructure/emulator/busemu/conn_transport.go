package busemu

import (
	"crypto/tls"
	"io"
	"net"
	"time"
)

// The first byte of a connection shows its protocol: a TLS ClientHello, a request for a
// WebSocket (GET), or AMQP, which begins with 'A'.
const (
	tlsRecordHandshake = 0x16
	httpGet            = 'G'
)

// startTransport detects the protocol of a new connection. One port serves plain TCP, TLS if
// Options.TLS is set, and WebSockets on both.
func (c *conn) startTransport() error {
	if err := c.nc.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return err
	}
	first, err := c.peek()
	if err != nil {
		return err
	}
	if first == tlsRecordHandshake && c.ns.o.TLS != nil {
		secure := tls.Server(c.nc, c.ns.o.TLS)
		if err := secure.HandshakeContext(c.ns.ctx); err != nil {
			return err
		}
		c.nc = secure
		if first, err = c.peek(); err != nil {
			return err
		}
	}
	if first == httpGet {
		return c.startWebSocket()
	}
	return nil
}

// peek returns the first byte without consuming it.
func (c *conn) peek() (byte, error) {
	first := make([]byte, 1)
	_, err := io.ReadFull(c.nc, first)
	c.nc = &prefixedConn{Conn: c.nc, prefix: first}
	return first[0], err
}

// prefixedConn returns the bytes read by peek again.
type prefixedConn struct {
	net.Conn
	prefix []byte
}

func (p *prefixedConn) Read(b []byte) (int, error) {
	if len(p.prefix) == 0 {
		return p.Conn.Read(b)
	}
	n := copy(b, p.prefix)
	p.prefix = p.prefix[n:]
	return n, nil
}
