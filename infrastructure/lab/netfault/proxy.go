// Package netfault simulates network faults on one machine: a proxy between a process and a
// server holds, delays, loses or resets their connections. Fault tests and the playground of
// feedbox-dev use it.
package netfault

import (
	"context"
	"net"
	"sync"
	"time"
)

// Proxy forwards TCP connections to a server and injects faults. Its methods are safe for
// concurrent use.
type Proxy struct {
	target   string
	listener net.Listener
	done     sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	up      Way        // to the server
	down    Way        // from the server
	changed chan struct{}
	conns   map[*proxied]struct{}
	refuse  bool
	closed  bool
}

// Way has the faults of one direction.
type Way struct {
	// Hold holds all segments until it is cleared. A partition has this effect on TCP,
	// because the ends retransmit lost segments.
	Hold bool
	// Delay delays each segment.
	Delay time.Duration
	// Lose is the share of segments, 0 to 1, that are delayed by Repeat together with the
	// segments after them. A lost segment has this effect on TCP.
	Lose   float64
	Repeat time.Duration
}

// proxied is one connection through the proxy.
type proxied struct {
	ends [2]net.Conn
	lost chan struct{} // closed: nothing is forwarded, and the ends are not closed
}

// Start forwards to target, host:port, from a free port of the loopback interface.
func Start(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // binding does not block
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, listener: l, changed: make(chan struct{}), conns: map[*proxied]struct{}{}}
	p.done.Go(p.accept)
	return p, nil
}

// Addr returns the address of the proxy, host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Set sets the faults of both directions, also for existing connections.
func (p *Proxy) Set(up, down Way) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.up, p.down = up, down
	close(p.changed)
	p.changed = make(chan struct{})
}

// Heal removes all faults.
func (p *Proxy) Heal() { p.Set(Way{}, Way{}) }

// Lose drops all traffic of the existing connections without closing them, as a restarted
// firewall does. It does not affect new connections.
func (p *Proxy) Lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		select {
		case <-c.lost:
		default:
			close(c.lost)
		}
	}
}

// Reset resets the existing connections.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.reset()
	}
}

// Refuse resets the existing connections, and new ones at once while on is true, as a stopped server
// does.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	p.refuse = on
	p.mu.Unlock()
	if on {
		p.Reset()
	}
}

// Connections returns the number of connections.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// Close closes the proxy and its connections, and waits for their goroutines.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	_ = p.listener.Close()
	for c := range p.conns {
		c.reset()
	}
	close(p.changed)
	p.changed = make(chan struct{})
	p.mu.Unlock()
	p.done.Wait()
}

func (c *proxied) reset() {
	for _, end := range c.ends {
		if tcp, ok := end.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // the close becomes a reset
		}
		_ = end.Close()
	}
}

func (p *Proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		far, err := net.Dial("tcp", p.target) //nolint:noctx // on one machine it does not block
		if err != nil {
			_ = near.Close() // the server is down
			continue
		}
		c := &proxied{ends: [2]net.Conn{near, far}, lost: make(chan struct{})}
		p.mu.Lock()
		if p.closed || p.refuse {
			c.reset()
		}
		p.conns[c] = struct{}{}
		p.mu.Unlock()
		p.done.Go(func() { p.serve(c) })
	}
}

func (p *Proxy) serve(c *proxied) {
	var both sync.WaitGroup
	both.Go(func() { p.pump(c, c.ends[0], c.ends[1], func() Way { return p.up }) })
	both.Go(func() { p.pump(c, c.ends[1], c.ends[0], func() Way { return p.down }) })
	both.Wait()
	c.reset()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// segment has the bytes of one read, and the time to forward them.
type segment struct {
	data []byte
	due  time.Time
}

// pump forwards from one end to the other. When from ends, it closes that direction of to
// after the segments in flight.
func (p *Proxy) pump(c *proxied, from, to net.Conn, way func() Way) {
	segments := make(chan segment, 1024)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(segments)
		lost := 0.0 // counted, not drawn, so that runs with equal segments are equal
		for {
			buf := make([]byte, 16<<10)
			n, err := from.Read(buf)
			if n > 0 {
				w, _ := p.now(way)
				wait := w.Delay
				if lost += w.Lose; lost >= 1 {
					lost--
					wait += w.Repeat
				}
				segments <- segment{buf[:n], time.Now().Add(wait)}
			}
			if err != nil {
				return
			}
		}
	})
	for s := range segments {
		if p.pass(c, s.due, way) {
			_, _ = to.Write(s.data) // after an error the other direction ends, too
		}
	}
	reading.Wait()
	select {
	case <-c.lost: // the other end must not notice
	default:
		_ = to.(*net.TCPConn).CloseWrite()
	}
}

// pass waits until a segment is due. It returns false if the segment must be dropped.
func (p *Proxy) pass(c *proxied, due time.Time, way func() Way) bool {
	for {
		w, changed := p.now(way)
		wait := time.Until(due)
		if !w.Hold && wait <= 0 {
			select {
			case <-c.lost:
				return false
			default:
				return true
			}
		}
		if w.Hold {
			wait = time.Hour
		}
		ctx, cancel := context.WithTimeout(context.Background(), wait) //nolint:forbidigo // ends with the segment
		select {
		case <-ctx.Done():
		case <-changed:
		case <-c.lost:
			cancel()
			return false
		}
		cancel()
		if p.ended() {
			return false
		}
	}
}

func (p *Proxy) now(way func() Way) (w Way, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return way(), p.changed
}

func (p *Proxy) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}
