package limit

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// state of a connection, see the package.
type state int

const (
	idle state = iota
	receiving
	working
)

// conn is an accepted connection.
type conn struct {
	net.Conn
	owner   *Listener
	address string

	share     string    // caller, or address without one; guarded by owner.mu, as are the next three
	state     state     // of its request
	since     time.Time // when the state began
	anonymous int       // requests without a caller

	// Of the reader, of which there is one at a time: bytes after the head that Read returned last, and
	// whether nothing more is read, because a request without a caller was pipelined.
	ahead []byte
	done  bool

	writing atomic.Int64 // when the client took the last byte, in Unix nanoseconds; 0: nothing is to be taken
	mu      sync.Mutex   // guards last and armed
	last    time.Time    // write deadline set by the owner of the connection; zero: none
	armed   time.Time    // write deadline of Conn; zero: none
	reads   lateDeadline
}

func (l *Listener) wrap(accepted net.Conn) *conn {
	address := "from nowhere" // a pipe may have no address
	if remote := accepted.RemoteAddr(); remote != nil {
		address = AddressOf(remote.String())
	}
	if tcp, ok := accepted.(*net.TCPConn); ok && l.options.Buffer > 0 {
		_ = tcp.SetWriteBuffer(l.options.Buffer) // without it the connection only costs more
		_ = tcp.SetReadBuffer(l.options.Buffer)
	}
	return &conn{Conn: accepted, owner: l, address: address, share: address, since: time.Now()}
}

// enter begins a state. The caller must hold owner.mu.
func (c *conn) enter(s state) {
	if c.state != s {
		c.state, c.since = s, time.Now()
	}
}

// spent counts a request without a caller, and reports whether it must be the last one.
func (c *conn) spent() bool {
	c.owner.mu.Lock()
	defer c.owner.mu.Unlock()
	if c.share != c.address {
		return false
	}
	c.anonymous++
	return c.owner.options.Anonymous > 0 && c.anonymous >= c.owner.options.Anonymous
}

// rank orders the connections of a share: that with the lowest rank is displaced first. Without
// a caller, idle connections do not go first: each connection begins idle, so a new one would
// displace the one before it, while those that block the server stay.
func (c *conn) rank(now time.Time) int {
	switch {
	case c.stalled(now):
		return 0
	case c.share == c.address:
		return 1
	case c.state == idle:
		return 2
	default:
		return 3
	}
}

// patience is how long a client may take no byte of an answer and keep its protection.
const patience = time.Second

func (c *conn) stalled(now time.Time) bool {
	writing := c.writing.Load()
	return writing != 0 && now.Sub(time.Unix(0, writing)) > patience
}

// errPipelined looks like an error of the network, for which net/http closes without an answer.
var errPipelined error = &net.OpError{Op: "read", Err: errors.New("requests without a caller were pipelined")}

// Read returns at most one head of a request, in servers that bound requests without a caller. So
// it is known at the end of a request whether the client has sent the next one already.
func (c *conn) Read(p []byte) (n int, err error) {
	if !c.owner.heads {
		return c.receive(p)
	}
	if c.done {
		return 0, errPipelined
	}
	if len(c.ahead) == 0 {
		if n, err = c.receive(p); n == 0 {
			return n, err
		}
		if end := headEnd(p[:n]); end < n {
			c.ahead, n = append(c.ahead, p[end:n]...), end
		}
		return n, err
	}
	n = copy(p, c.ahead[:headEnd(c.ahead)])
	if c.ahead = c.ahead[n:]; len(c.ahead) == 0 {
		c.ahead = nil // otherwise the memory before it would be kept
	}
	return n, nil
}

// headEnd returns the length of text up to its first empty line, or all of it. Bodies are split in
// the same way, which no reader notices.
func headEnd(text []byte) int {
	for i := 0; ; {
		line := bytes.IndexByte(text[i:], '\n')
		if line < 0 {
			return len(text)
		}
		if i += line + 1; bytes.HasPrefix(text[i:], []byte("\n")) {
			return i + 1
		} else if bytes.HasPrefix(text[i:], []byte("\r\n")) {
			return i + 2
		}
	}
}

// answered notes at the end of a request whether the client has sent the next one without waiting for
// the answer, and without a caller. Browsers and proxies do not do that. The caller must hold owner.mu.
func (c *conn) answered() {
	c.done = c.share == c.address && len(bytes.Trim(c.ahead, "\r\n")) > 0
}

// CloseWrite ends the sending side. net/http needs it to deliver an answer to a request whose
// body it does not read.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close closes the connection, and uncounts it.
func (c *conn) Close() error {
	c.owner.mu.Lock()
	c.owner.forget(c)
	c.owner.mu.Unlock()
	return c.Conn.Close()
}

// reset closes the connection because of a limit. The kernel drops the bytes that the client has
// not taken; otherwise it would keep them for minutes.
func (c *conn) reset(reason string) {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
	c.record(reason)
}

// record logs that a limit closed the connection, sampled.
func (c *conn) record(reason string) {
	if ok, before := c.owner.closed.Line(); ok {
		c.owner.options.Logger.Warn("connection closed by the limits", slog.String("reason", reason), slog.Int64("left_out", before))
	}
}
