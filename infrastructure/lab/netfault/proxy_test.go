package netfault

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"
)

// echo starts a server that returns what it reads, until the test ends.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func TestProxy(t *testing.T) {
	p, err := Start(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	dial := func() (ask func(limit time.Duration) bool) {
		c, err := net.Dial("tcp", p.Addr())
		if err != nil { // a reset can come before the connection is established here
			return func(time.Duration) bool { return false }
		}
		t.Cleanup(func() { _ = c.Close() })
		r := bufio.NewReader(c)
		return func(limit time.Duration) bool {
			if _, err := c.Write([]byte("hello\n")); err != nil {
				return false
			}
			_ = c.SetReadDeadline(time.Now().Add(limit))
			line, err := r.ReadString('\n')
			return err == nil && line == "hello\n"
		}
	}
	const soon, long = 100 * time.Millisecond, time.Minute
	ask := dial()
	if !ask(long) {
		t.Fatal("no answer without faults")
	}
	for name, c := range map[string][2]Way{"both ways": {{Hold: true}, {Hold: true}}, "up": {{Hold: true}, {}}, "down": {{}, {Hold: true}}} {
		p.Set(c[0], c[1])
		if ask(soon) {
			t.Fatalf("cut %s: an answer came", name)
		}
		p.Heal()
		if !ask(long) {
			t.Fatalf("cut %s and healed: no answer", name)
		}
		ask = dial() // because the old connection has more answers to come
	}
	p.Set(Way{Delay: soon}, Way{Lose: 1, Repeat: soon})
	if began := time.Now(); !ask(long) || time.Since(began) < 2*soon {
		t.Fatalf("answered after %s, want the delay of both directions", time.Since(began))
	}
	p.Heal()
	p.Lose()
	if ask(soon) {
		t.Fatal("a lost connection answers")
	}
	if ask = dial(); !ask(long) {
		t.Fatal("a new connection does not work after others were lost")
	}
	p.Refuse(true)
	if other := dial(); ask(soon) || other(soon) {
		t.Error("an answer although connections are refused")
	}
	p.Refuse(false)
	if ask = dial(); !ask(long) {
		t.Error("no answer once connections are accepted again")
	}
	p.Reset()
	if ask(long) {
		t.Fatal("a connection that was reset answers")
	}
}
