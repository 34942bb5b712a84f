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
	// gatherHigh is how many bytes may wait before Write waits for room.
	gatherHigh = 256 << 10
	// gatherTimeout bounds one write of what was gathered, as go-amqp's own default
	// bounds that of a frame (conn.go, defaultWriteTimeout).
	gatherTimeout = 30 * time.Second
	// gatherLast bounds what Close waits for: the write under way and that of what is left.
	gatherLast = time.Second
)

// gather returns a connection that sends the frames which are written while others are
// on their way in one piece: go-amqp writes every frame by itself (conn.go, connWriter), so
// that each completed message would cost a system call and, with TLS, a record.
//
// Write returns before the bytes are sent, and waits only when 256 KB are on their way: at
// most until the write deadline. A piece gets 30 seconds to be sent. An error of sending
// closes the connection and is that of all later writes. Close sends what is left, for a
// second at most, and waits for the goroutine that gather starts.
func gather(conn net.Conn) net.Conn {
	g := &gathering{Conn: conn, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	g.room.L = &g.mu
	go g.run()
	return g
}

type gathering struct {
	net.Conn
	wake  chan struct{} // capacity 1: there is something to send, or no more will come
	ended chan struct{} // closed when run returns

	mu       sync.Mutex // guards what follows
	room     sync.Cond  // out was taken, err is set, or the deadline has come
	out      []byte     // written and not yet being sent
	err      error      // of sending
	closed   bool
	deadline time.Time // of Write
}

func (g *gathering) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.out) >= gatherHigh {
		g.await()
	}
	switch {
	case g.err == nil && !g.closed && len(g.out) >= gatherHigh:
		return 0, os.ErrDeadlineExceeded
	case g.err != nil:
		return 0, g.err
	case g.closed:
		return 0, net.ErrClosed
	}
	g.out = append(g.out, b...)
	g.signal()
	return len(b), nil
}

// await waits for room, until the deadline.
func (g *gathering) await() {
	if !g.deadline.IsZero() {
		timer := time.AfterFunc(time.Until(g.deadline), func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.room.Broadcast()
		})
		defer timer.Stop()
	}
	for g.err == nil && !g.closed && len(g.out) >= gatherHigh && (g.deadline.IsZero() || time.Now().Before(g.deadline)) {
		g.room.Wait()
	}
}

func (g *gathering) signal() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// run sends what was written. Before it takes that, it lets the goroutines run that are
// ready to write: that makes many frames of one piece where it would else be one.
func (g *gathering) run() {
	defer close(g.ended)
	var piece []byte
	for range g.wake {
		runtime.Gosched()
		g.mu.Lock()
		piece, g.out = g.out, piece[:0]
		last := g.closed
		if !last { // under the lock: Close's own deadline comes after it
			_ = g.Conn.SetWriteDeadline(time.Now().Add(gatherTimeout))
		}
		g.room.Broadcast()
		g.mu.Unlock()
		var err error
		if len(piece) > 0 {
			_, err = g.Conn.Write(piece)
		}
		if err != nil {
			g.mu.Lock()
			g.err = err
			g.room.Broadcast()
			g.mu.Unlock()
			_ = g.Conn.Close() // so that the reader learns of it; the error is told by Write
			return
		}
		if last {
			return
		}
	}
}

func (g *gathering) Close() error {
	g.mu.Lock()
	g.closed = true
	_ = g.Conn.SetWriteDeadline(time.Now().Add(gatherLast)) // also of a write that is under way
	g.room.Broadcast()
	g.mu.Unlock()
	g.signal()
	<-g.ended
	return g.Conn.Close()
}

func (g *gathering) SetDeadline(t time.Time) error {
	return errors.Join(g.SetReadDeadline(t), g.SetWriteDeadline(t))
}

// SetWriteDeadline implements net.Conn, for the next Write.
func (g *gathering) SetWriteDeadline(t time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deadline = t
	return nil
}
