package busemu

import (
	"crypto/tls"
	"io"
	"net"
	"time"
)

// tlsRecordHandshake is the first byte of a TLS ClientHello. An AMQP connection
// begins with an 'A'.
const tlsRecordHandshake = 0x16

// startTLS looks at the first byte of a new connection: with Options.TLS set, one
// port serves TLS and plain TCP.
func (c *conn) startTLS() error {
	if c.srv.o.TLS == nil {
		return nil
	}
	if err := c.nc.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return err
	}
	var first [1]byte
	if _, err := io.ReadFull(c.nc, first[:]); err != nil {
		return err
	}
	whole := &prefixedConn{Conn: c.nc, prefix: first[:]}
	if first[0] != tlsRecordHandshake {
		c.nc = whole
		return nil
	}
	secure := tls.Server(whole, c.srv.o.TLS)
	if err := secure.HandshakeContext(c.srv.ctx); err != nil {
		return err
	}
	c.nc = secure
	return nil
}

// prefixedConn gives back bytes that were read to look at them.
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
