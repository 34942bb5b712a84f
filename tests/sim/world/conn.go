package world

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// conn is one end of a connection. As on a socket, a write does not wait for the reader. Data
// written by a frozen part is delivered when it is thawed, and data written to it is there when it
// reads again. There is no back-pressure, because AMQP and HTTP have their own.
type conn struct {
	nic           *nic
	local, remote address
	in, out       *stream
	peer          *conn
}

func newConns(dials, listens *nic, addr string) (a, b *conn) {
	there, back := newStream(), newStream()
	a = &conn{nic: dials, local: "client", remote: address(addr), in: back, out: there}
	b = &conn{nic: listens, local: address(addr), remote: "client", in: there, out: back}
	a.peer, b.peer = b, a
	return a, b
}

func (c *conn) Read(p []byte) (int, error) {
	for {
		if !c.breaks() {
			if err := c.nic.gate(); err != nil {
				return 0, err
			}
		}
		n, wait, err := c.in.take(p)
		if n > 0 || err != nil {
			return n, err
		}
		<-wait
	}
}

// breaks reports whether the connection breaks when a part is frozen, see nic.freeze.
func (c *conn) breaks() bool { return c.local == busAddr || c.remote == busAddr }

func (c *conn) Write(p []byte) (int, error) {
	if c.nic.springs(p) {
		c.nic.freeze()
	}
	c.nic.mu.Lock() // otherwise a concurrent thaw could miss data held now
	defer c.nic.mu.Unlock()
	if c.nic.dead {
		return 0, errDown
	}
	return c.out.put(p, c.nic.frozen)
}

// Close ends both directions; the peer can still read written data.
func (c *conn) Close() error {
	c.out.finish(io.EOF)
	c.in.finish(net.ErrClosed)
	c.nic.remove(c)
	return nil
}

// cut breaks the connection for both ends.
func (c *conn) cut() {
	for _, s := range []*stream{c.in, c.out} {
		s.finish(syscall.ECONNRESET)
	}
	c.nic.remove(c)
	c.peer.nic.remove(c.peer)
}

// thawed delivers the data written while the part was frozen.
func (c *conn) thawed() { c.out.release() }

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(t)
	return nil
}

// SetWriteDeadline does nothing, because writes do not block.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// stream is one direction of a connection.
type stream struct {
	mu       sync.Mutex // guards the fields below
	ready    []byte     // to be read
	held     []byte     // written by a frozen part
	ended    error      // returned to the reader after ready
	deadline time.Time
	timer    *time.Timer
	wake     chan struct{} // closed on a change for the reader; nil if none waits
}

func newStream() *stream { return &stream{} }

// take moves ready data to p. If there is none, wait is closed when the caller should try again.
func (s *stream) take(p []byte) (n int, wait <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended == net.ErrClosed || s.ended == error(syscall.ECONNRESET): //nolint:errorlint // our own values
		return 0, nil, s.ended
	case !s.deadline.IsZero() && !time.Now().Before(s.deadline):
		return 0, nil, os.ErrDeadlineExceeded
	case len(p) == 0:
		return 0, nil, nil
	case len(s.ready) > 0:
		n = copy(p, s.ready)
		s.ready = s.ready[n:]
		if len(s.ready) == 0 {
			s.ready = nil
		}
		return n, nil, nil
	case s.ended != nil && len(s.held) == 0:
		return 0, nil, s.ended
	}
	if s.wake == nil {
		s.wake = make(chan struct{})
	}
	return 0, s.wake, nil
}

func (s *stream) put(p []byte, frozen bool) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return 0, syscall.EPIPE
	}
	if frozen || len(s.held) > 0 {
		s.held = append(s.held, p...)
		return len(p), nil
	}
	s.ready = append(s.ready, p...)
	s.signalLocked()
	return len(p), nil
}

// release makes the held data ready.
func (s *stream) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = append(s.ready, s.held...)
	s.held = nil
	s.signalLocked()
}

// finish ends the stream: io.EOF after the ready data, any other error at once.
func (s *stream) finish(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil || s.ended == io.EOF { //nolint:errorlint // our own value
		s.ended = err
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.signalLocked()
}

func (s *stream) setDeadline(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if !t.IsZero() && s.ended == nil {
		s.timer = time.AfterFunc(time.Until(t), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.signalLocked()
		})
	}
	s.signalLocked()
}

func (s *stream) signalLocked() {
	if s.wake != nil {
		close(s.wake)
		s.wake = nil
	}
}
