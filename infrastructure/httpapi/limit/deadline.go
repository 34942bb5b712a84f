package limit

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// A deadline of a connection is a timer. The functions of this file move it as seldom as possible,
// because that was a noticeable part of a short request.

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
	now := time.Now()
	for took := now; ; {
		c.writing.Store(took.UnixNano())
		c.arm(now, now.Add(min(patience/2, took.Add(progress).Sub(now))))
		var taken int
		taken, err = c.Conn.Write(p[n:])
		n += taken
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || c.expired() {
			return n, err
		}
		if now = time.Now(); taken > 0 {
			took = now
		} else if now.Sub(took) >= progress {
			c.reset("the client takes no byte of the answer")
			return n, err
		}
	}
}

// arm makes a write end at the deadline or up to patience/4 earlier; it then continues with a new
// one. So a connection with many writes sets few deadlines, each of which moves a timer. A deadline
// of the owner that is earlier takes precedence.
func (c *conn) arm(now, deadline time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.last.IsZero() && c.last.Before(deadline) {
		deadline = c.last
	}
	if !c.armed.After(deadline) && c.armed.Sub(now) >= patience/4 {
		return
	}
	c.armed = deadline
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
	c.last, c.armed = t, t
	return c.Conn.SetWriteDeadline(t)
}

// lateDeadline is the read deadline of a connection. It is set when a Read begins, because net/http
// sets and clears one for the head of each request, which is usually read already: each would move
// a timer twice for nothing.
type lateDeadline struct {
	mu         sync.Mutex // guards the fields below
	want, real time.Time  // zero: none
	reading    int        // calls of Read in progress
}

// SetReadDeadline bounds the Read in progress and all later ones.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.reads.mu.Lock()
	defer c.reads.mu.Unlock()
	c.reads.want = t
	if c.reads.reading == 0 {
		return nil
	}
	return c.reads.set(c.Conn)
}

// set must be called with mu held.
func (d *lateDeadline) set(on net.Conn) error {
	if d.want.Equal(d.real) {
		return nil
	}
	d.real = d.want
	return on.SetReadDeadline(d.real)
}

// receive reads from the network.
func (c *conn) receive(p []byte) (int, error) {
	c.reads.mu.Lock()
	_ = c.reads.set(c.Conn) // fails only if the connection is closed
	c.reads.reading++
	c.reads.mu.Unlock()
	defer c.received()
	return c.Conn.Read(p)
}

func (c *conn) received() {
	c.reads.mu.Lock()
	c.reads.reading--
	c.reads.mu.Unlock()
}

// SetDeadline sets both deadlines.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}
