package httpapi

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// connections is a listener that bounds the number of its open connections. At the limit, a
// new connection displaces the one that has been idle for longest; a keep-alive connection
// may be closed at any time. If all connections have a request, the new one is closed. So
// idle connections cannot lock out callers, and the memory of all is bounded. It is safe
// for concurrent use.
type connections struct {
	net.Listener
	limit int // unlimited if not positive

	mu   sync.Mutex                 // guards the fields below
	open map[net.Conn]*list.Element // element of idle; nil while the connection has a request
	idle *list.List                 // of net.Conn, the longest idle first
}

func newConnections(listener net.Listener, limit int) *connections {
	return &connections{Listener: listener, limit: limit, open: map[net.Conn]*list.Element{}, idle: list.New()}
}

func (c *connections) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil || c.limit <= 0 {
			return conn, err
		}
		admitted, displaced := c.admit(conn)
		if displaced != nil {
			_ = displaced.Close()
		}
		if admitted {
			return conn, nil
		}
		_ = conn.Close()
	}
}

// admit counts conn as open, and returns the connection to close for it.
func (c *connections) admit(conn net.Conn) (admitted bool, displaced net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) >= c.limit {
		longest := c.idle.Front()
		if longest == nil {
			return false, nil
		}
		displaced, _ = c.idle.Remove(longest).(net.Conn)
		delete(c.open, displaced)
	}
	c.open[conn] = c.idle.PushBack(conn)
	return true, displaced
}

// observe tracks the states of admitted connections, as ConnState of an http.Server.
func (c *connections) observe(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	place, admitted := c.open[conn]
	if !admitted {
		return // displaced, or there is no limit
	}
	switch state {
	case http.StateNew: // counted by admit
	case http.StateActive:
		if place != nil {
			c.idle.Remove(place)
			c.open[conn] = nil
		}
	case http.StateIdle:
		if place == nil {
			c.open[conn] = c.idle.PushBack(conn)
		}
	case http.StateHijacked, http.StateClosed:
		if place != nil {
			c.idle.Remove(place)
		}
		delete(c.open, conn)
	}
}
