package limit

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
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
	mu      sync.Mutex   // guards last
	last    time.Time    // write deadline set by the owner of the connection; zero: none
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
		return c.Conn.Read(p)
	}
	if c.done {
		return 0, errPipelined
	}
	if len(c.ahead) == 0 {
		if n, err = c.Conn.Read(p); n == 0 {
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

// Write fails once the client has taken no byte for Options.Progress. There is no limit for the
// whole, because a slow client that makes progress is not an attack, and a live view never ends. A
// write of many bytes blocks until the last one is taken, so it is cut into short ones: otherwise a
// client that takes some bytes each second would count as stalled.
func (c *conn) Write(p []byte) (n int, err error) {
	progress := c.owner.options.Progress
	if progress < 0 {
		return c.Conn.Write(p)
	}
	defer c.writing.Store(0)
	for took := time.Now(); ; {
		c.writing.Store(took.UnixNano())
		c.setDeadline(time.Now().Add(min(patience/2, time.Until(took.Add(progress)))))
		var taken int
		taken, err = c.Conn.Write(p[n:])
		n += taken
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || c.expired() {
			return n, err
		}
		if now := time.Now(); taken > 0 {
			took = now
		} else if now.Sub(took) >= progress {
			c.reset("the client takes no byte of the answer")
			return n, err
		}
	}
}

// setDeadline sets the earlier one of the deadline and that of the owner.
func (c *conn) setDeadline(deadline time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.last.IsZero() && c.last.Before(deadline) {
		deadline = c.last
	}
	_ = c.Conn.SetWriteDeadline(deadline) // fails only if the connection is closed
}

func (c *conn) expired() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.last.IsZero() && !time.Now().Before(c.last)
}

// SetWriteDeadline bounds the whole of all writes, besides the progress of each.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = t
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline sets both deadlines.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
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
