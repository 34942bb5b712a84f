package limit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/infrastructure/emulator/pipenet"
)

// An IPv6 caller has one key for its network, in any notation. An IPv4 caller has the same key
// if it is connected to an IPv6 listener.
func TestKeyIsIPv4AddressOrIPv6Network(t *testing.T) {
	for from, want := range map[string]string{
		"192.0.2.1:5":             "from 192.0.2.1",
		"[::ffff:192.0.2.1]:6":    "from 192.0.2.1",
		"[2001:db8:0:1::7]:1":     "from 2001:db8:0:1::/64",
		"[2001:db8:0:1:9::8]:2":   "from 2001:db8:0:1::/64",
		"[2001:db8:0:2::7]:1":     "from 2001:db8:0:2::/64",
		"[fe80::1%eth0]:1":        "from fe80::/64",
		"a pipe without a number": "from a pipe without a number",
	} {
		if got := AddressOf(from); got != want {
			t.Errorf("%s is %q, want %q", from, got, want)
		}
	}
}

// addressed is a pipe whose remote address is given.
type addressed struct {
	net.Conn
	from string
}

func (a addressed) RemoteAddr() net.Addr { return a }
func (addressed) Network() string        { return "test" }
func (a addressed) String() string       { return a.from }

// party is a listener whose connections have one letter each. A connection in upper case has the
// caller of that letter.
type party struct {
	*Listener
	t     *testing.T
	conns map[*conn]string
	peers map[string]net.Conn
}

func newParty(t *testing.T, o *Options) *party {
	return &party{Listener: Listen(nil, o), t: t, conns: map[*conn]string{}, peers: map[string]net.Conn{}}
}

// join opens a connection from an address and returns the name of the displaced one, "refused"
// or "".
func (p *party) join(name, address, caller string) string {
	p.t.Helper()
	one, peer := net.Pipe()
	p.t.Cleanup(func() { _, _ = one.Close(), peer.Close() })
	c := p.wrap(addressed{one, address + ":1"})
	time.Sleep(time.Millisecond) // of a bubble, so that each is older than the next
	admitted, displaced := p.admit(c)
	if !admitted {
		return "refused"
	}
	p.conns[c], p.peers[name] = name, peer
	if caller != "" {
		p.ConnState(c, http.StateActive)
		Identify(p.ConnContext(p.t.Context(), c), caller)
	}
	return p.conns[displaced]
}

func (p *party) named(name string) *conn {
	for c, n := range p.conns {
		if n == name {
			return c
		}
	}
	p.t.Fatalf("no connection %s", name)
	return nil
}

func (p *party) context(name string) context.Context {
	return p.ConnContext(p.t.Context(), p.named(name))
}

func TestLargestShareLosesAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t, &Options{Connections: 6})
		for _, one := range []struct{ name, address, caller, displaced string }{
			{"x1", "192.0.2.1", "", ""},
			{"a1", "192.0.2.9", "a", ""},
			{"a2", "192.0.2.9", "a", ""},
			{"b1", "192.0.2.9", "b", ""},
			{"a3", "192.0.2.9", "a", ""},
			{"x2", "192.0.2.1", "", ""},
			{"c1", "192.0.2.9", "c", "a1"}, // a has 3, the address 2
			{"x3", "192.0.2.1", "", "x1"},  // its own address has 3 with it
			{"d1", "192.0.2.9", "d", "x2"}, // a and the address have 2: those without a caller go first
			{"e1", "192.0.2.9", "e", "a2"},
			{"f1", "192.0.2.9", "f", "x3"}, // all have 1
		} {
			if got := p.join(one.name, one.address, one.caller); got != one.displaced {
				t.Errorf("%s displaces %q, want %q", one.name, got, one.displaced)
			}
		}
		if len(p.open) != 6 || len(p.addresses) != 1 || len(p.shares) != 6 {
			t.Errorf("counted %d connections, %v, %v", len(p.open), p.addresses, p.shares)
		}
	})
}

// Among more connections than are compared, those of others are still not displaced.
func TestLargestShareOfManyLosesAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t, &Options{Connections: 3*sampled + 20})
		for i := range 3 * sampled {
			p.join(fmt.Sprint("attacker ", i), "192.0.2.1", "attacker")
		}
		for i := range 20 {
			p.join(fmt.Sprint("other ", i), "192.0.2.9", fmt.Sprint("caller ", i))
		}
		for i := range 50 {
			if got := p.join(fmt.Sprint("new ", i), "192.0.2.9", fmt.Sprint("new ", i)); !strings.HasPrefix(got, "attacker") {
				t.Errorf("new connection %d displaces %q, want one of the attacker", i, got)
			}
		}
	})
}

// BenchmarkDisplacedConnection is the cost of a new connection when all of 2,000 are taken.
func BenchmarkDisplacedConnection(b *testing.B) {
	l := Listen(nil, &Options{Connections: 2000})
	join := func(i int) {
		c := &conn{owner: l, address: "from 192.0.2.1", share: fmt.Sprint("caller ", i%2), state: receiving, since: time.Now()}
		if admitted, _ := l.admit(c); !admitted {
			b.Fatal("refused")
		}
	}
	for i := range 2000 {
		join(i)
	}
	for i := 0; b.Loop(); i++ {
		join(i)
	}
}

// A new connection counts in the share of its address, so it displaces one of a share that is as large.
func TestNewConnectionDisplacesOneOfItsAddressInAnEqualShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t, &Options{Connections: 3})
		p.join("a1", "192.0.2.9", "a")
		p.join("a2", "192.0.2.9", "a")
		p.join("x1", "192.0.2.1", "")
		if got := p.join("x2", "192.0.2.1", ""); got != "x1" {
			t.Errorf("x2 displaces %q, want the other one of its address", got)
		}
	})
}

func TestConnectionOfACrowdedAddressDisplacesOneOfThatAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t, &Options{PerAddress: 3})
		for _, name := range []string{"y1", "y2", "y3"} {
			p.join(name, "192.0.2.2", "")
		}
		for _, name := range []string{"x1", "x2", "x3"} { // smaller shares, younger and identified
			p.join(name, "192.0.2.1", name)
		}
		if got := p.join("x4", "192.0.2.1", ""); got != "x1" {
			t.Errorf("x4 displaces %q, want the oldest one of its address", got)
		}
	})
}

func TestOrderWithinAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t, &Options{Connections: 4, Progress: time.Hour})
		p.join("busy", "192.0.2.1", "a")
		p.join("used", "192.0.2.1", "a")
		p.join("stalled", "192.0.2.1", "a")
		p.join("used later", "192.0.2.1", "a")
		writing := make(chan error, 1)
		go func() {
			_, err := p.named("stalled").Write([]byte("an answer"))
			writing <- err
		}()
		time.Sleep(2 * patience)
		p.ConnState(p.named("used"), http.StateIdle)
		time.Sleep(time.Millisecond)
		p.ConnState(p.named("used later"), http.StateIdle)
		var got []string
		for _, name := range []string{"1", "2", "3"} {
			got = append(got, p.join(name, "192.0.2.9", name))
		}
		if !slices.Equal(got, []string{"stalled", "used", "used later"}) {
			t.Errorf("displaced %v", got)
		}
		p.named("stalled").reset("end")
		if <-writing == nil {
			t.Error("the answer that no one read was written")
		}
	})
}

// A new connection has not had the time to send its request. So it does not go before those that
// keep the server busy.
func TestOldestConnectionWithoutACallerGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t, &Options{Connections: 3})
		for _, name := range []string{"1", "2", "3"} {
			p.join(name, "192.0.2.1", "")
			p.ConnState(p.named(name), http.StateActive)
		}
		time.Sleep(time.Millisecond)
		got := []string{p.join("4", "192.0.2.1", ""), p.join("5", "192.0.2.1", ""), p.join("6", "192.0.2.1", ""), p.join("7", "192.0.2.1", "")}
		if !slices.Equal(got, []string{"1", "2", "3", "4"}) {
			t.Errorf("displaced %v", got)
		}
		_ = p.named("6").Close()
		_ = p.named("6").Close()
		if got := p.join("8", "192.0.2.1", ""); got != "" || len(p.open) != 3 || p.shares["from 192.0.2.1"] != 3 {
			t.Errorf("displaced %q with %d open after one was closed, share %v", got, len(p.open), p.shares)
		}
	})
}

// A request in progress is not ended for a new connection, unless its client does not read the
// answer.
func TestWorkingConnectionIsDisplacedOnlyIfItsClientStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t, &Options{Connections: 2, Progress: time.Hour})
		for _, name := range []string{"one", "other"} {
			p.join(name, "192.0.2.1", "a")
			Protect(p.context(name))
		}
		if got := p.join("1", "192.0.2.2", ""); got != "refused" {
			t.Errorf("displaced %q", got)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := p.named("other").Write([]byte("an answer"))
			ended <- err
		}()
		time.Sleep(patience)
		if got := p.join("2", "192.0.2.2", ""); got != "" && got != "other" {
			t.Errorf("displaced %q", got)
		}
		time.Sleep(patience)
		if got := p.join("3", "192.0.2.2", ""); got != "2" && got != "other" {
			t.Errorf("displaced %q", got)
		}
		p.named("other").reset("end")
		if <-ended == nil {
			t.Error("the answer that no one read was written")
		}
		p.ConnState(p.named("one"), http.StateIdle)
		p.ConnState(p.named("one"), http.StateActive)
		p.join("4", "192.0.2.2", "")
		if got := p.join("5", "192.0.2.2", ""); got == "refused" {
			t.Error("the protection outlives the request")
		}
	})
}

// The writes of a server block until all their bytes are taken.
func TestSlowClientThatMakesProgressIsNotStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t, nil)
		p.join("slow", "192.0.2.1", "a")
		ended := make(chan error, 1)
		go func() {
			_, err := p.named("slow").Write(make([]byte, 60))
			ended <- err
		}()
		for range 60 {
			if time.Sleep(900 * time.Millisecond); p.named("slow").stalled(time.Now()) {
				t.Fatal("a client that takes a byte each second counts as stalled")
			}
			if _, err := io.ReadFull(p.peers["slow"], make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestAddressBoundDisplacesOnlyOfThatAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t, &Options{PerAddress: 2})
		for _, one := range []struct{ name, address, displaced string }{
			{"a1", "192.0.2.1", ""}, {"b1", "192.0.2.2", ""}, {"a2", "192.0.2.1", ""}, {"b2", "192.0.2.2", ""}, {"c", "192.0.2.3", ""}, {"a3", "192.0.2.1", "a1"},
		} {
			if got := p.join(one.name, one.address, ""); got != one.displaced {
				t.Errorf("%s displaces %q, want %q", one.name, got, one.displaced)
			}
		}
	})
}

func TestClientThatTakesNoByteIsReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p := newParty(t, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		p.join("slow", "192.0.2.1", "")
		began := time.Now()
		var reading sync.WaitGroup
		reading.Go(func() { // a byte every four seconds, a hundred times
			time.Sleep(500 * time.Millisecond) // never at the time of a deadline
			for range 100 {
				time.Sleep(4 * time.Second)
				if _, err := io.ReadFull(p.peers["slow"], make([]byte, 1)); err != nil {
					return
				}
			}
		})
		n, err := p.named("slow").Write(make([]byte, 1000))
		if took := time.Since(began); n != 100 || !errors.Is(err, os.ErrDeadlineExceeded) || took < 405*time.Second || took > 406*time.Second {
			t.Errorf("wrote %d bytes in %v: %v; want 100, and the end 5 s after the last", n, took, err)
		}
		open := len(p.open)
		_ = p.named("slow").Close()
		reading.Wait()
		if open != 0 || !strings.Contains(log.String(), "takes no byte") {
			t.Errorf("%d connections are open; log %s", open, log.String())
		}
	})
}

// The deadline that the owner of a connection sets bounds the whole.
func TestOwnDeadlineEndsASlowWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t, nil)
		p.join("slow", "192.0.2.1", "")
		began := time.Now()
		if err := p.named("slow").SetDeadline(began.Add(7 * time.Second)); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(4 * time.Second)
			_, _ = io.ReadFull(p.peers["slow"], make([]byte, 1))
		}()
		n, err := p.named("slow").Write(make([]byte, 1000))
		if took := time.Since(began); n != 1 || !errors.Is(err, os.ErrDeadlineExceeded) || took != 7*time.Second {
			t.Errorf("wrote %d bytes in %v: %v", n, took, err)
		}
	})
}

// timed counts the deadlines that a connection sets.
type timed struct {
	net.Conn
	reads, writes int
}

func (c *timed) SetReadDeadline(t time.Time) error {
	c.reads++
	return c.Conn.SetReadDeadline(t)
}

func (c *timed) SetWriteDeadline(t time.Time) error {
	c.writes++
	return c.Conn.SetWriteDeadline(t)
}

// A server sets two read deadlines for each request, and each answer is a write. Few of them may
// move a timer.
func TestShortRequestsMoveFewTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t, nil)
		p.join("one", "192.0.2.1", "")
		c, peer := p.named("one"), p.peers["one"]
		counted := &timed{Conn: c.Conn}
		c.Conn = counted
		for range 1000 {
			time.Sleep(time.Millisecond)
			var exchange sync.WaitGroup
			exchange.Go(func() {
				_, _ = peer.Write([]byte("head"))
				_, _ = io.ReadFull(peer, make([]byte, 6))
			})
			if _, err := io.ReadFull(c, make([]byte, 4)); err != nil {
				t.Fatal(err)
			}
			_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
			_ = c.SetReadDeadline(time.Time{})
			if _, err := c.Write([]byte("answer")); err != nil {
				t.Fatal(err)
			}
			exchange.Wait()
		}
		if counted.reads != 0 || counted.writes > 4 {
			t.Errorf("1000 requests in a second set %d deadlines for reads and %d for writes; want none and 4", counted.reads, counted.writes)
		}
	})
}

// A read deadline bounds a Read whether it is set before or during it. The last one counts.
func TestReadDeadlineBoundsTheReadInProgress(t *testing.T) {
	for name, one := range map[string]struct{ before, during, want time.Duration }{
		"set before":            {before: 2 * time.Second, want: 2 * time.Second},
		"set during":            {during: 3 * time.Second, want: 3 * time.Second},
		"moved later":           {before: 2 * time.Second, during: 4 * time.Second, want: 4 * time.Second},
		"moved earlier":         {before: 4 * time.Second, during: 2 * time.Second, want: 2 * time.Second},
		"cleared, data arrives": {before: 2 * time.Second, during: -1, want: 9 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newParty(t, nil)
				p.join("one", "192.0.2.1", "")
				c, began := p.named("one"), time.Now()
				if one.before != 0 {
					_ = c.SetReadDeadline(began.Add(one.before))
				}
				var others sync.WaitGroup
				others.Go(func() {
					time.Sleep(time.Second)
					switch {
					case one.during > 0:
						_ = c.SetReadDeadline(began.Add(one.during))
					case one.during < 0:
						_ = c.SetReadDeadline(time.Time{})
					}
					time.Sleep(8 * time.Second)
					_ = p.peers["one"].SetWriteDeadline(time.Now().Add(time.Second))
					_, _ = p.peers["one"].Write([]byte("x"))
				})
				_, err := c.Read(make([]byte, 1))
				if took := time.Since(began); took != one.want || errors.Is(err, os.ErrDeadlineExceeded) == (one.during < 0) {
					t.Errorf("the read ended after %v: %v; want %v", took, err, one.want)
				}
				others.Wait()
			})
		})
	}
}

// A client without a caller that does not wait for an answer gets no further one: thousands of such
// connections would keep the processors from a good caller. One that waits gets 16. A caller is not
// affected, nor is a body that arrives with its head.
func TestConnectionWithoutACallerServesFewRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var handled, bodies atomic.Int64
		network := pipenet.New()
		listener, err := network.Listen("api.test:80")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- Serve(ctx, listener, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				handled.Add(1)
				if caller := r.Header.Get("Caller"); caller != "" {
					Identify(r.Context(), caller)
				}
				body, _ := io.ReadAll(r.Body)
				bodies.Add(int64(len(body)))
			}), nil)
		}()
		get := func(caller, end string) string {
			return "GET / HTTP/1.1" + end + "Host: a" + end + "Caller: " + caller + end + end
		}
		const post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n\r\n\r\nbody"
		for _, tc := range []struct {
			name, request string
			waits         bool
			want          int64
		}{
			{"pipelined", get("", "\r\n"), false, 1},
			{"pipelined with bare line feeds", get("", "\n"), false, 1},
			{"pipelined with bodies", post, false, 2}, // the second head arrives with the body of the first
			{"one after the other", get("", "\r\n"), true, 16},
			{"one after the other with bodies", post, true, 16},
			{"pipelined by a caller", get("ann", "\r\n"), false, 100},
		} {
			conn, err := network.DialContext(ctx, "tcp", "api.test:80")
			if err != nil {
				t.Fatal(err)
			}
			turn := make(chan struct{}, 100)
			go func() {
				if !tc.waits {
					_, _ = io.WriteString(conn, strings.Repeat(tc.request, 100))
					return
				}
				for range turn {
					_, _ = io.WriteString(conn, tc.request)
				}
			}()
			handled.Store(0)
			bodies.Store(0)
			got := int64(0)
			for answers := bufio.NewReader(conn); got < 100; got++ {
				turn <- struct{}{}
				answer, err := http.ReadResponse(answers, nil)
				if err != nil {
					break
				}
				_ = answer.Body.Close()
			}
			close(turn)
			synctest.Wait()
			if got != tc.want || handled.Load() != tc.want || tc.request == post && tc.waits && bodies.Load() != 8*tc.want {
				t.Errorf("%s: %d answers of %d handled requests with %d bytes of bodies, want %d", tc.name, got, handled.Load(), bodies.Load(), tc.want)
			}
			_ = conn.Close()
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A client that has connected and sent nothing, as one whose request is on its way, is waited for, but nothing
// of it is aborted: the stop is clean. net/http waits 5 s for it, which may be longer than the drain.
func TestStopAbortsOnlyRequests(t *testing.T) {
	for sent, aborted := range map[string]bool{"": false, "GET / HTTP/1.1\r\nHost: a\r\n\r\n": true} {
		synctest.Test(t, func(t *testing.T) {
			network := pipenet.New()
			listener, err := network.Listen("ops.test:80")
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended, began := make(chan error, 1), time.Now()
			go func() {
				ended <- Serve(ctx, listener, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), &Options{Drain: 2 * time.Second})
			}()
			conn, err := network.DialContext(ctx, "tcp", "ops.test:80")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, sent); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // accepted
			stop()
			err = <-ended
			if aborted != (err != nil && strings.Contains(err.Error(), "requests were aborted after 2s, of connections: 1")) || !aborted && err != nil {
				t.Errorf("a client sent %q: %v", sent, err)
			}
			if d := time.Since(began); d != 2*time.Second {
				t.Errorf("a client sent %q: stopped after %v, want the whole drain", sent, d)
			}
			if _, err := conn.Read(make([]byte, 1)); err == nil {
				t.Error("the connection is open")
			}
		})
	}
}
