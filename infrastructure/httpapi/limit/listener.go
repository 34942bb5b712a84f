package limit

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Options configures Listen and Serve. The zero value of each field is the default.
type Options struct {
	// Connections bounds the open connections. Default unlimited.
	Connections int
	// PerAddress bounds those of one address, for IPv6 of one /64 network. Default only
	// Connections, because behind a proxy all clients have one address.
	PerAddress int
	// Progress bounds the time in which a client takes no byte of an answer. Default 5 s;
	// negative means unlimited.
	Progress time.Duration
	// Buffer bounds the bytes that the kernel keeps of a connection, in each direction. Linux
	// reserves twice as much for its own records. Default 32 KB; negative means the default of the
	// system, which is some MB.
	Buffer int
	// Logger receives the connections that the limits closed, sampled, and in Serve the errors
	// of net/http. Default none.
	Logger *slog.Logger

	// Body and Head bound the time of a request's body and the size of its head, in Serve.
	// Default 15 s and 16 KB.
	Body time.Duration
	Head int
	// Anonymous bounds the requests of a connection without a caller, in Serve; then it is closed.
	// Default 16, which is more than a browser needs for a page; negative means unlimited.
	Anonymous int
	// Drain bounds the graceful shutdown of Serve. Default 20 s. Stopping is called before it;
	// default none.
	Drain    time.Duration
	Stopping func()
}

func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	out.Progress, out.Buffer = cmp.Or(out.Progress, 5*time.Second), cmp.Or(out.Buffer, 32<<10)
	out.Logger = cmp.Or(out.Logger, slog.New(slog.DiscardHandler))
	out.Body, out.Head, out.Drain = cmp.Or(out.Body, 15*time.Second), cmp.Or(out.Head, 16<<10), cmp.Or(out.Drain, 20*time.Second)
	out.Anonymous = cmp.Or(out.Anonymous, 16)
	return out
}

// Listener bounds the connections that it accepts, see the package. It is safe for concurrent
// use.
type Listener struct {
	net.Listener
	options Options
	closed  Sampler // of log lines
	heads   bool    // requests without a caller are bounded, so Read separates heads

	mu        sync.Mutex         // guards the fields below, and the state of each conn
	open      map[*conn]struct{} // until they are closed or displaced
	shares    map[string]int     // number of connections by caller or address
	addresses map[string]int     // number of connections by address
}

// Listen returns listener with limits. An http.Server on it must have ConnState and ConnContext
// of the result.
func Listen(listener net.Listener, options *Options) *Listener {
	return &Listener{Listener: listener, options: options.withDefaults(), open: map[*conn]struct{}{}, shares: map[string]int{}, addresses: map[string]int{}}
}

// Accept returns the next connection within the limits.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := l.wrap(accepted)
		admitted, displaced := l.admit(c)
		if displaced != nil {
			displaced.reset("displaced by a new connection")
		}
		if admitted {
			return c, nil
		}
		_ = c.Close()
		c.record("refused: every connection has a request in progress")
	}
}

// sampled bounds the connections that are compared to find the one to displace. Below it the
// choice is exact, above it is a random sample, because a search through all of them for each
// new connection would be an attack of its own: through 2,000 it took two fifths of the processor
// time of an API whose connections are all taken.
const sampled = 128

// admit counts c as open, and returns the connection to close for it.
func (l *Listener) admit(c *conn) (admitted bool, displaced *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	crowded := l.options.PerAddress > 0 && l.addresses[c.address] >= l.options.PerAddress
	if crowded || l.options.Connections > 0 && len(l.open) >= l.options.Connections {
		if displaced = l.choose(c, crowded); displaced == nil {
			return false, nil
		}
		l.forget(displaced)
	}
	l.open[c] = struct{}{}
	l.shares[c.share]++
	l.addresses[c.address]++
	return true, displaced
}

// choose returns the connection to displace, nil if all are protected. If the address of c is
// crowded, it is one of that address. The caller must hold the mutex.
func (l *Listener) choose(c *conn, crowded bool) (best *conn) {
	now, compared, most := time.Now(), 0, 0
	l.shares[c.share]++ // as if c were admitted
	defer func() { l.count(l.shares, c.share) }()
	for one := range l.open {
		if compared++; compared > sampled && best != nil {
			break
		}
		if crowded && one.address != c.address || one.state == working && !one.stalled(now) {
			continue
		}
		share := l.shares[one.share]
		if best == nil || cmp.Or(most-share, one.rank(now)-best.rank(now), one.since.Compare(best.since)) < 0 {
			best, most = one, share
		}
	}
	return best
}

// forget uncounts c. The caller must hold the mutex.
func (l *Listener) forget(c *conn) {
	if _, ok := l.open[c]; !ok {
		return
	}
	delete(l.open, c)
	l.count(l.shares, c.share)
	l.count(l.addresses, c.address)
}

// busy returns the number of connections with a request.
func (l *Listener) busy() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		if c.state != idle {
			n++
		}
	}
	return n
}

// count takes one from a number, and drops it at zero.
func (l *Listener) count(numbers map[string]int, key string) {
	if numbers[key]--; numbers[key] <= 0 {
		delete(numbers, key)
	}
}

// ConnState tracks the requests of connections, as ConnState of an http.Server.
func (l *Listener) ConnState(of net.Conn, state http.ConnState) {
	c := unwrap(of)
	if c == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch state {
	case http.StateActive:
		c.enter(receiving)
	case http.StateIdle:
		c.enter(idle)
		c.answered()
	case http.StateHijacked:
		c.enter(working)
	case http.StateNew, http.StateClosed: // counted by Accept and Close
	}
}

type connKey struct{}

// ConnContext makes the connection known to Identify and Protect, as ConnContext of an
// http.Server.
func (l *Listener) ConnContext(ctx context.Context, of net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, unwrap(of))
}

// Identify moves the connection of a request into the share of its authenticated caller.
func Identify(ctx context.Context, caller string) {
	c, _ := ctx.Value(connKey{}).(*conn)
	if c == nil {
		return
	}
	l := c.owner
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.open[c]; !open || c.share == caller {
		return
	}
	l.count(l.shares, c.share)
	c.share = caller
	l.shares[caller]++
}

// closing returns handler, and closes connections without a caller after Options.Anonymous
// requests, because pipelined requests that are refused or answered for nothing cost work.
func (l *Listener) closing(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, _ := r.Context().Value(connKey{}).(*conn); c != nil && c.spent() {
			w.Header().Set("Connection", "close")
		}
		handler.ServeHTTP(w, r)
	})
}

// Protect keeps the connection of a request from being displaced until it is answered.
func Protect(ctx context.Context) {
	if c, _ := ctx.Value(connKey{}).(*conn); c != nil {
		ProtectConn(c)
	}
}

// ProtectConn keeps an accepted connection of another protocol than HTTP from being displaced.
func ProtectConn(of net.Conn) {
	if c := unwrap(of); c != nil {
		c.owner.mu.Lock()
		defer c.owner.mu.Unlock()
		c.enter(working)
	}
}

// unwrap returns the connection of this package, also below TLS; nil if there is none.
func unwrap(of net.Conn) *conn {
	if encrypted, ok := of.(*tls.Conn); ok {
		of = encrypted.NetConn()
	}
	c, _ := of.(*conn)
	return c
}

// AddressOf returns the key of a remote address: for IPv6 its /64 network, because one customer
// usually has a whole network. The key cannot be the id of a caller.
func AddressOf(remote string) string {
	from, err := netip.ParseAddrPort(remote)
	if err != nil {
		return "from " + remote
	}
	address := from.Addr().Unmap()
	if network, err := address.WithZone("").Prefix(64); err == nil && address.Is6() {
		return "from " + network.String()
	}
	return "from " + address.String()
}
