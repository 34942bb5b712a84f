package wire

import (
	"errors"
	"net"
	"os"
	"runtime"
	"sync"
	"time"
)

const (
	// maxPending is the number of pending bytes above which Write blocks.
	maxPending = 256 << 10
	// writeTimeout bounds one write to the connection. It equals the default of go-amqp for a frame
	// (conn.go, defaultWriteTimeout).
	writeTimeout = 30 * time.Second
	// closeTimeout bounds the running write and the write of pending bytes during Close.
	closeTimeout = time.Second
)

// coalesce returns a connection that writes pending frames together. go-amqp writes every frame
// separately (conn.go, connWriter), so each settled message would otherwise cost a system call and a TLS
// record.
//
// Write returns before the bytes are sent. If maxPending bytes are pending, it blocks until the write
// deadline at most. A failed write closes the connection, and all later calls of Write return its error.
// Close sends the pending bytes within closeTimeout, and waits for the goroutine that coalesce starts.
func coalesce(conn net.Conn) net.Conn {
	c := &coalescer{Conn: conn, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	c.room.L = &c.mu
	go c.run()
	return c
}

type coalescer struct {
	net.Conn
	wake  chan struct{} // capacity 1: bytes are pending, or the connection is closed
	ended chan struct{} // closed when run returns

	mu       sync.Mutex // guards the fields below
	room     sync.Cond  // signals that pending was taken, err was set, or the deadline has passed
	pending  []byte
	err      error // of a write
	closed   bool
	deadline time.Time // of Write
}

func (c *coalescer) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) >= maxPending {
		c.awaitRoom()
	}
	switch {
	case c.err == nil && !c.closed && len(c.pending) >= maxPending:
		return 0, os.ErrDeadlineExceeded
	case c.err != nil:
		return 0, c.err
	case c.closed:
		return 0, net.ErrClosed
	}
	c.pending = append(c.pending, b...)
	c.signal()
	return len(b), nil
}

// awaitRoom blocks until there is room or the deadline has passed.
func (c *coalescer) awaitRoom() {
	if !c.deadline.IsZero() {
		timer := time.AfterFunc(time.Until(c.deadline), func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.room.Broadcast()
		})
		defer timer.Stop()
	}
	for c.err == nil && !c.closed && len(c.pending) >= maxPending && (c.deadline.IsZero() || time.Now().Before(c.deadline)) {
		c.room.Wait()
	}
}

func (c *coalescer) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run writes pending bytes. It yields before it takes them, because other goroutines that are ready to
// write would otherwise get a write of their own for each frame.
func (c *coalescer) run() {
	defer close(c.ended)
	var chunk []byte
	for range c.wake {
		runtime.Gosched()
		c.mu.Lock()
		chunk, c.pending = c.pending, chunk[:0]
		last := c.closed
		if !last { // under the lock, so that it cannot replace the deadline that Close sets
			_ = c.Conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		}
		c.room.Broadcast()
		c.mu.Unlock()
		var err error
		if len(chunk) > 0 {
			_, err = c.Conn.Write(chunk)
		}
		if err != nil {
			c.mu.Lock()
			c.err = err
			c.room.Broadcast()
			c.mu.Unlock()
			_ = c.Conn.Close() // ends the reader; Write returns the error
			return
		}
		if last {
			return
		}
	}
}

func (c *coalescer) Close() error {
	c.mu.Lock()
	c.closed = true
	_ = c.Conn.SetWriteDeadline(time.Now().Add(closeTimeout)) // also for the running write
	c.room.Broadcast()
	c.mu.Unlock()
	c.signal()
	<-c.ended
	return c.Conn.Close()
}

func (c *coalescer) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetWriteDeadline sets the deadline of calls of Write. Writes to the connection have writeTimeout.
func (c *coalescer) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	return nil
}
