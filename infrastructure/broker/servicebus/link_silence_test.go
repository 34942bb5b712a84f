package servicebus

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/servicebus/internal/wire"
	"feedbox/infrastructure/emulator/busemu"
)

// linkSet counts the links that were used. It is safe for concurrent use.
type linkSet struct {
	mu    sync.Mutex // guards names
	names map[string]bool
}

// add adds a name, unless it is empty, and returns the number of names.
func (l *linkSet) add(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names == nil {
		l.names = map[string]bool{}
	}
	if name != "" {
		l.names[name] = true
	}
	return len(l.names)
}

// publishUntilSent publishes messages of new keys until one is sent. It returns the time that took and
// the number of failed calls. Their reason is a send_timeout, or one of others.
func publishUntilSent(t *testing.T, p *Publisher, others ...string) (took time.Duration, failed int) {
	t.Helper()
	began := time.Now()
	for n := range 100 {
		err := p.Publish(t.Context(), []relay.Group{group(fmt.Sprint("key", n), 10)})
		if err == nil {
			return time.Since(began), n
		}
		if !slices.Contains(append(others, "send_timeout"), relay.ReasonOf(err)) || relay.ClassOf(err) != relay.Outage {
			t.Errorf("error %v, want a send_timeout", err)
		}
		time.Sleep(5 * time.Second)
	}
	t.Fatalf("%v later each send still times out", time.Since(began))
	return 0, 0
}

// The broker neither stores nor settles what arrives on one link. A new link works.
func TestSilentLinkIsReplacedAfterTwoTimeouts(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		var log bytes.Buffer
		p := w.publisher(t, &PublisherOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err := p.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		first := ""
		w.server.Control(busemu.OpSend, func(c *busemu.Call) *busemu.Fault {
			if first == "" {
				first = c.Link
			}
			if c.Link == first {
				return &busemu.Fault{Loss: busemu.Drop}
			}
			return nil
		})
		took, failed := publishUntilSent(t, p)
		if failed != 2 || took > time.Minute {
			t.Errorf("sent after %v and %d timeouts, want 2", took, failed)
		}
		if n := w.connections(); n != 1 {
			t.Errorf("%d connections, want 1: a new link is enough", n)
		}
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "link replaced") || !strings.Contains(got, "entity=contacts") {
			t.Errorf("log %q, want one line about the link", got)
		}
	})
}

// An outcome between two timeouts shows that the link works.
func TestLinkWithOutcomesBetweenTimeoutsStays(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.publisher(t, nil)
		links := &linkSet{}
		n := 0
		w.server.Control(busemu.OpSend, func(c *busemu.Call) *busemu.Fault {
			links.add(c.Link)
			if n++; n%2 == 0 {
				return &busemu.Fault{Loss: busemu.Drop}
			}
			return &busemu.Fault{Outcome: busemu.Released}
		})
		for range 10 {
			_ = p.Publish(t.Context(), []relay.Group{group("a", 10)})
		}
		if links.add("") != 1 {
			t.Errorf("%d links, want 1", links.add(""))
		}
	})
}

// Calls that end before the timeout of a send are no evidence against the link.
func TestShortCallsDoNotReplaceALink(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.publisher(t, nil)
		links := &linkSet{}
		w.server.Control(busemu.OpSend, func(c *busemu.Call) *busemu.Fault {
			links.add(c.Link)
			return &busemu.Fault{Loss: busemu.Drop}
		})
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_ = p.Publish(ctx, []relay.Group{group("a", 10)})
			cancel()
		}
		if links.add("") != 1 {
			t.Errorf("%d links, want 1", links.add(""))
		}
	})
}

// All links of the first connection are silent, or it attaches no further link, or it grants no further token. A new
// connection works.
func TestSilentConnectionIsReplaced(t *testing.T) {
	for _, also := range []busemu.Operation{busemu.OpSend, busemu.OpAttach, busemu.OpPutToken} {
		t.Run(string(also), func(t *testing.T) {
			inWorld(t, nil, func(t *testing.T, w *world) {
				var log bytes.Buffer
				p := w.publisher(t, &PublisherOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
				if err := p.Open(t.Context()); err != nil {
					t.Fatal(err)
				}
				silent := func(*busemu.Call) *busemu.Fault {
					if w.connections() == 1 {
						return &busemu.Fault{Loss: busemu.Drop}
					}
					return nil
				}
				w.server.Control(busemu.OpSend, silent)
				w.server.Control(also, silent)
				var others []string
				if also == busemu.OpPutToken { // such a request has a shorter timeout than a send
					others = append(others, "connection_lost")
				}
				took, failed := publishUntilSent(t, p, others...)
				if failed != 4 || took > 3*time.Minute {
					t.Errorf("sent after %v and %d timeouts, want 4", took, failed)
				}
				if n := w.connections(); n != 2 {
					t.Errorf("%d connections, want 2", n)
				}
				if !strings.Contains(log.String(), "connection_too=true") {
					t.Errorf("log %q, want a line about the connection", log.String())
				}
			})
		})
	}
}

// It says nothing about the link that has replaced this one.
func TestLateOutcomeDoesNotEndTheCountOfTimeouts(t *testing.T) {
	for silent, want := range map[bool]int{true: 3, false: 0} {
		l := &senderLink{unanswered: 3}
		if l.noteOutcome(&attachment{silent: silent}); l.unanswered != want {
			t.Errorf("replaced: %t: %d timeouts after an outcome, want %d", silent, l.unanswered, want)
		}
	}
}

// Its successor has as many timeouts, because another publisher may use it.
func TestSecondSilentConnectionIsReplacedAsLate(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.publisher(t, nil)
		if err := p.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.server.Control(busemu.OpSend, func(*busemu.Call) *busemu.Fault {
			if w.connections() <= 2 {
				return &busemu.Fault{Loss: busemu.Drop}
			}
			return nil
		})
		if took, failed := publishUntilSent(t, p); failed != 8 || w.connections() != 3 {
			t.Errorf("sent after %v and %d timeouts on %d connections, want 4 timeouts on each of two", took, failed, w.connections())
		}
	})
}

// Many sends time out at the same time. They replace one link, and not its successors.
func TestSendsThatTimeOutTogetherReplaceOneLink(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.publisher(t, nil)
		if err := p.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		links := &linkSet{}
		w.server.Control(busemu.OpSend, func(c *busemu.Call) *busemu.Fault {
			if links.add(c.Link) == 1 {
				return &busemu.Fault{Loss: busemu.Drop}
			}
			return nil
		})
		var groups []relay.Group
		for n := range 50 {
			groups = append(groups, group(fmt.Sprint("key", n), 10, 10))
		}
		began := time.Now()
		_ = p.Publish(t.Context(), groups)
		if err := p.Publish(t.Context(), groups); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 20*time.Second || links.add("") != 2 || w.connections() != 1 {
			t.Errorf("%v, %d links and %d connections, want 2 links of one connection after one timeout", took, links.add(""), w.connections())
		}
	})
}

// The broker accepts messages of the silent link after they were sent again on the next one. Each event
// arrives once, in the order of its key.
func TestLateOutcomesOfASilentLinkKeepTheOrder(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.publisher(t, nil)
		if err := p.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		first, hold := "", make(chan struct{})
		w.server.Control(busemu.OpSend, func(c *busemu.Call) *busemu.Fault {
			if first == "" {
				first = c.Link
			}
			if c.Link == first {
				return &busemu.Fault{Hold: hold}
			}
			return nil
		})
		rest := group("a", 10, 10, 10)
		for range 2 { // the second batch has one more message than the first
			_ = p.Publish(t.Context(), []relay.Group{{Key: "a", Messages: rest.Messages[:2]}})
		}
		if err := p.Publish(t.Context(), []relay.Group{{Key: "a", Messages: rest.Messages[:1]}}); err != nil {
			t.Fatal(err)
		}
		close(hold) // a.1 and a.2, twice
		time.Sleep(time.Second)
		if err := p.Publish(t.Context(), []relay.Group{{Key: "a", Messages: rest.Messages[1:]}}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string][]string{"a": {"a.1", "a.2", "a.3"}}, idsByKey(w.received(t))); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
	})
}

// quietConn is a connection that loses all traffic after quiet is set.
type quietConn struct {
	net.Conn
	quiet *atomic.Bool
}

func (c quietConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.quiet.Load() {
			return n, err
		}
	}
}

func (c quietConn) Write(b []byte) (int, error) {
	if c.quiet.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// quietClient returns a client whose first connection loses all traffic after quiet is set.
func quietClient(t *testing.T, w *world) (client *Client, quiet *atomic.Bool) {
	t.Helper()
	quiet = &atomic.Bool{}
	client, err := NewClient(ClientConfig{ConnectionString: w.server.ConnectionString(), Dial: func(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
		conn, err := w.dial(ctx, args)
		if w.connections() > 1 {
			return conn, err
		}
		return quietConn{conn, quiet}, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	return client, quiet
}

// A firewall has forgotten the connection. Each call ends within the limits of a send and of the closes,
// and a new connection works.
func TestSilentNetworkEndsSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.close(t)
		client, quiet := quietClient(t, w)
		p, err := NewPublisher(client, "contacts", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		quiet.Store(true)
		began := time.Now()
		for n := range 10 {
			call := time.Now()
			err := p.Publish(t.Context(), []relay.Group{group(fmt.Sprint("key", n), 10)})
			if took := time.Since(call); took > wire.ConnectTimeout+5*time.Second {
				t.Errorf("call %d took %v", n, took)
			}
			if err == nil {
				break
			}
		}
		if took := time.Since(began); took > 2*time.Minute || w.connections() != 2 {
			t.Errorf("sent after %v over %d connections, want within 2 minutes over the second", took, w.connections())
		}
		if err := client.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
