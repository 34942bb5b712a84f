package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
)

// errDown is the network error of a crashed process, and of a frozen one that dials.
var errDown = errors.New("world: the process has no network")

// network connects dialers with listeners.
type network struct {
	mu        sync.Mutex           // guards listeners
	listeners map[string]*listener // by address
}

func newNetwork() *network { return &network{listeners: map[string]*listener{}} }

// nic is the network interface of one incarnation of a part: all its connections and listeners. It
// is safe for concurrent use.
type nic struct {
	network *network

	mu        sync.Mutex // guards the fields below
	dead      bool
	frozen    bool
	trap      []byte         // freezes the part when it sends this; nil = none
	conns     map[*conn]bool // whether they are open; closed ones are here until the thaw
	listeners []*listener
	changed   chan struct{} // closed when dead or frozen changes
}

func newNIC(n *network) *nic {
	return &nic{network: n, conns: map[*conn]bool{}, changed: make(chan struct{})}
}

// gate blocks while the part is frozen.
func (n *nic) gate() error {
	for {
		n.mu.Lock()
		dead, frozen, changed := n.dead, n.frozen, n.changed
		n.mu.Unlock()
		switch {
		case dead:
			return errDown
		case !frozen:
			return nil
		}
		<-changed
	}
}

func (n *nic) state() (dead, frozen bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dead, n.frozen
}

func (n *nic) alive() bool {
	dead, _ := n.state()
	return !dead
}

// dial connects to an address of the network. If either side is frozen it returns an error at once
// and does not wait for the thaw, because the Azure SDKs dial with a mutex held, and virtual time
// stops while other goroutines wait for that mutex.
func (n *nic) dial(ctx context.Context, addr string) (net.Conn, error) {
	if dead, frozen := n.state(); dead || frozen {
		return nil, errDown
	}
	n.network.mu.Lock()
	l := n.network.listeners[addr]
	n.network.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("world: dial %s: connection refused", addr)
	}
	if _, frozen := l.nic.state(); frozen {
		return nil, fmt.Errorf("world: dial %s: no answer", addr)
	}
	mine, theirs := newConns(n, l.nic, addr)
	if !n.add(mine) || !l.nic.add(theirs) {
		mine.cut()
		return nil, errDown
	}
	select {
	case l.accept <- theirs:
		return mine, nil
	case <-l.closed:
		mine.cut()
		return nil, fmt.Errorf("world: dial %s: connection refused", addr)
	case <-ctx.Done():
		mine.cut()
		return nil, ctx.Err()
	}
}

func (n *nic) add(c *conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dead || n.frozen {
		return false
	}
	n.conns[c] = true
	return true
}

func (n *nic) remove(c *conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.frozen && !n.dead { // its data is delivered by the thaw
		n.conns[c] = false
		return
	}
	delete(n.conns, c)
}

// freeze blocks all data in both directions. Connections to the broker break instead, because
// azservicebus holds a mutex while it restores a link over a connection that does not answer.
func (n *nic) freeze() { n.set(true) }

// springs reports once whether p contains what the part is to freeze at.
func (n *nic) springs(p []byte) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.trap == nil || !bytes.Contains(p, n.trap) {
		return false
	}
	n.trap = nil
	return true
}

func (n *nic) setTrap(text []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.trap = text
}

// thaw delivers the held data.
func (n *nic) thaw() { n.set(false) }

func (n *nic) set(frozen bool) {
	n.mu.Lock()
	if n.frozen == frozen || n.dead {
		n.mu.Unlock()
		return
	}
	n.frozen = frozen
	conns := n.changeLocked()
	n.mu.Unlock()
	for _, c := range conns {
		if frozen && c.breaks() {
			c.cut()
			continue
		}
		c.thawed()
	}
}

// changeLocked wakes goroutines that wait for a change of state. It returns the connections; n.mu
// is held.
func (n *nic) changeLocked() []*conn {
	close(n.changed)
	n.changed = make(chan struct{})
	conns := make([]*conn, 0, len(n.conns))
	for c, open := range n.conns {
		if conns = append(conns, c); !open {
			delete(n.conns, c)
		}
	}
	return conns
}

// reset breaks the open connections; data in flight is lost.
func (n *nic) reset() {
	n.mu.Lock()
	conns := make([]*conn, 0, len(n.conns))
	for c := range n.conns {
		conns = append(conns, c)
	}
	n.mu.Unlock()
	for _, c := range conns {
		c.cut()
	}
}

// kill breaks all connections and listeners permanently.
func (n *nic) kill() {
	n.mu.Lock()
	var conns []*conn
	if !n.dead {
		n.dead = true
		conns = n.changeLocked()
	}
	listeners := n.listeners
	n.listeners = nil
	n.mu.Unlock()
	for _, l := range listeners {
		_ = l.Close()
	}
	for _, c := range conns {
		c.cut()
	}
}

// listen binds an address of the network.
func (n *nic) listen(addr string) (net.Listener, error) {
	l := &listener{nic: n, addr: address(addr), accept: make(chan *conn), closed: make(chan struct{})}
	n.network.mu.Lock()
	defer n.network.mu.Unlock()
	if n.network.listeners[addr] != nil {
		return nil, fmt.Errorf("world: listen on %s: address already in use", addr)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dead {
		return nil, errDown
	}
	n.listeners = append(n.listeners, l)
	n.network.listeners[addr] = l
	return l, nil
}

// listener accepts connections of a part.
type listener struct {
	nic    *nic
	addr   address
	accept chan *conn    // never closed; closed ends both sides
	closed chan struct{} // closed by Close
	once   sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		l.nic.network.mu.Lock()
		if l.nic.network.listeners[string(l.addr)] == l {
			delete(l.nic.network.listeners, string(l.addr))
		}
		l.nic.network.mu.Unlock()
		close(l.closed)
	})
	return nil
}

func (l *listener) Addr() net.Addr { return l.addr }

type address string

func (address) Network() string  { return "world" }
func (a address) String() string { return string(a) }
