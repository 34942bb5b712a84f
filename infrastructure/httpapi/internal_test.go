package httpapi

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// An IPv6 caller has one rate for its network, in any notation. An IPv4 caller has the same
// rate if it is connected to an IPv6 listener.
func TestRateKeyIsIPv4AddressOrIPv6Network(t *testing.T) {
	for from, want := range map[string]string{
		"192.0.2.1:5":             "from 192.0.2.1",
		"[::ffff:192.0.2.1]:6":    "from 192.0.2.1",
		"[2001:db8:0:1::7]:1":     "from 2001:db8:0:1::/64",
		"[2001:db8:0:1:9::8]:2":   "from 2001:db8:0:1::/64",
		"[2001:db8:0:2::7]:1":     "from 2001:db8:0:2::/64",
		"[fe80::1%eth0]:1":        "from fe80::/64",
		"a pipe without a number": "from a pipe without a number",
	} {
		if got := addressOf(&http.Request{RemoteAddr: from}); got != want {
			t.Errorf("%s is %q, want %q", from, got, want)
		}
	}
}

// The connection whose last request ended first is displaced, and no longer counts.
func TestLongestIdleConnectionIsDisplaced(t *testing.T) {
	c := newConnections(nil, 2)
	conns := make([]net.Conn, 4)
	for i := range conns {
		one, other := net.Pipe()
		conns[i] = one
		t.Cleanup(func() { _, _ = one.Close(), other.Close() })
	}
	for _, conn := range conns[:2] {
		if ok, displaced := c.admit(conn); !ok || displaced != nil {
			t.Fatal("no room for two")
		}
	}
	c.observe(conns[0], http.StateActive)
	c.observe(conns[0], http.StateIdle)
	if ok, displaced := c.admit(conns[2]); !ok || displaced != conns[1] {
		t.Error("the third connection did not displace the longest idle one")
	}
	c.observe(conns[2], http.StateActive)
	c.observe(conns[2], http.StateIdle)
	if ok, displaced := c.admit(conns[3]); !ok || displaced != conns[0] {
		t.Error("the fourth connection did not displace the longest idle one")
	}
	c.observe(conns[1], http.StateClosed)
	if len(c.open) != 2 || c.idle.Len() != 2 {
		t.Errorf("%d connections are counted, %d of them idle, and two are open", len(c.open), c.idle.Len())
	}
}

// A hanging readiness check must not block the prober.
func TestReadinessCheckTimesOutAfterASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ops := NewOps(&OpsOptions{Ready: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		began, answer := time.Now(), httptest.NewRecorder()
		ops.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if took := time.Since(began); answer.Code != http.StatusServiceUnavailable || took != time.Second {
			t.Errorf("%d after %s, want 503 after a second", answer.Code, took)
		}
	})
}

// An id of the maximum length is echoed, a longer one is not.
func TestLongClientRequestIDsAreNotEchoed(t *testing.T) {
	for length, back := range map[int]bool{1: true, maxClientRequestID: true, maxClientRequestID + 1: false} {
		id := strings.Repeat("x", length)
		h := http.Header{}
		setRequestHeaders(h, &http.Request{Header: http.Header{headerClientRequest: {id}}}, "r")
		if (h.Get(headerClientRequest) == id) != back {
			t.Errorf("an id of %d characters: echoed %q", length, h.Get(headerClientRequest))
		}
	}
}
