package rabbitmq

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/application/relay"
	"feedbox/infrastructure/consumer"
)

// Methods of AMQP 0-9-1, by class and method id.
const (
	connectionStartOk = 10<<16 | 11
	connectionTuneOk  = 10<<16 | 31
	connectionOpen    = 10<<16 | 40
	connectionClose   = 10<<16 | 50
	channelOpen       = 20<<16 | 10
	channelClose      = 20<<16 | 40
	exchangeDeclare   = 40<<16 | 10
	queueDeclare      = 50<<16 | 10
	basicQos          = 60<<16 | 10
	basicConsume      = 60<<16 | 20
	basicCancel       = 60<<16 | 30
	basicPublish      = 60<<16 | 40
	basicReturn       = 60<<16 | 50
	basicDeliver      = 60<<16 | 60
	basicAck          = 60<<16 | 80
	confirmSelect     = 85<<16 | 10
)

// peer is a broker in memory. It replies to the requests of this package and confirms messages, except
// for the methods in silent. It always sends heartbeats.
type peer struct {
	silent    func(connection, method int) bool
	mechanism string       // of the login, five letters; default PLAIN
	deliver   bool         // an event to each consumer
	further   int          // events after that one, whatever the prefetch
	cancel    func()       // cancels the last subscription
	noQueue   atomic.Bool  // messages are returned
	acked     atomic.Int32 // events
	header    atomic.Value // string, of the last message
	declared  atomic.Value // string, the arguments of all declared queues
	down      atomic.Int32 // failures of dial to come
	dials     atomic.Int32
	tasks     sync.WaitGroup
}

func (p *peer) dial(context.Context, string, string) (net.Conn, error) {
	if p.down.Add(-1) >= 0 {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	c := &peerConn{Conn: far, peer: p, number: int(p.dials.Add(1)), published: map[uint16]uint64{}}
	ended := make(chan struct{})
	p.tasks.Go(func() { defer close(ended); c.serve() })
	p.tasks.Go(func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(5 * time.Second):
				c.write(8, 0, nil)
			}
		}
	})
	return near, nil
}

type peerConn struct {
	net.Conn
	peer      *peer
	number    int
	published map[uint16]uint64 // messages by channel
	mu        sync.Mutex        // orders the writes
}

func (c *peerConn) write(kind byte, channel uint16, payload []byte) {
	frame := binary.BigEndian.AppendUint16([]byte{kind}, channel)
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(payload)))
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.Write(append(append(frame, payload...), 0xce))
}

func (c *peerConn) method(channel uint16, method uint32, arguments ...byte) {
	c.write(1, channel, append(binary.BigEndian.AppendUint32(nil, method), arguments...))
}

// content writes a method with a message.
func (c *peerConn) content(channel uint16, method uint32, arguments ...byte) {
	c.method(channel, method, arguments...)
	c.write(2, channel, []byte{0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0}) // two bytes, no properties
	c.write(3, channel, []byte("{}"))
}

func (c *peerConn) serve() {
	defer func() { _ = c.Close() }()
	if _, err := io.ReadFull(c, make([]byte, 8)); err != nil { // the protocol header
		return
	}
	c.method(0, 10<<16|10, append([]byte{0, 9, 0, 0, 0, 0}, "\x00\x00\x00\x05"+cmp.Or(c.peer.mechanism, "PLAIN")+"\x00\x00\x00\x05en_US"...)...)
	var header [7]byte
	for {
		if _, err := io.ReadFull(c, header[:]); err != nil {
			return
		}
		payload := make([]byte, binary.BigEndian.Uint32(header[3:])+1)
		if _, err := io.ReadFull(c, payload); err != nil {
			return
		}
		switch header[0] {
		case 2:
			c.peer.header.Store(string(payload))
		case 1:
			c.reply(binary.BigEndian.Uint16(header[1:]), int(binary.BigEndian.Uint32(payload)), payload[4:])
		}
	}
}

func (c *peerConn) reply(channel uint16, method int, arguments []byte) {
	if method == basicPublish {
		c.published[channel]++
	}
	if c.peer.silent != nil && c.peer.silent(c.number, method) {
		return
	}
	switch method {
	case connectionStartOk:
		c.method(0, 10<<16|30, 0, 0, 0, 2, 0, 0, 0, 10) // tune: 128 KiB frames, 10 s heartbeats
	case connectionTuneOk:
	case connectionOpen:
		c.method(0, 10<<16|41, 0)
	case channelOpen:
		c.method(channel, 20<<16|11, 0, 0, 0, 0)
	case queueDeclare:
		before, _ := c.peer.declared.Load().(string)
		c.peer.declared.Store(before + string(arguments))
		c.method(channel, 50<<16|11, append([]byte{1, 'q'}, make([]byte, 8)...)...)
	case basicConsume:
		tag := arguments[3+arguments[2]:] // after the queue
		tag = tag[:1+tag[0]]
		c.method(channel, 60<<16|21, tag...)
		c.peer.cancel = func() { c.method(channel, basicCancel, append(bytes.Clone(tag), 1)...) }
		for n := 1; c.peer.deliver && n <= 1+c.peer.further; n++ {
			c.content(channel, basicDeliver, append(bytes.Clone(tag), 0, 0, 0, 0, 0, 0, 0, byte(n), 0, 0, 0)...)
		}
	case basicAck:
		c.peer.acked.Add(1)
	case basicPublish:
		if c.peer.noQueue.Load() {
			c.content(channel, basicReturn, 1, 56, 0, 0, 0) // 312, NO_ROUTE
		}
		c.method(channel, basicAck, append(binary.BigEndian.AppendUint64(nil, c.published[channel]), 0)...)
	default: // replies without arguments, whose ids are one higher
		c.method(channel, uint32(method+1))
	}
}

// inSilence runs a test with a client of a broker that does not reply to the methods in silent.
func inSilence(t *testing.T, silent func(connection, method int) bool, test func(t *testing.T, p *peer, client *Client)) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{silent: silent}
		client, err := NewClient(Config{URL: "amqp://localhost", Dial: p.dial})
		if err != nil {
			t.Fatal(err)
		}
		test(t, p, client)
		began := time.Now()
		_ = client.Close() // fails if the broker does not reply
		if took := time.Since(began); took > requestTimeout+closeTimeout {
			t.Errorf("the client closed in %v", took)
		}
		p.tasks.Wait()
	})
}

func silentFor(methods ...int) func(connection, method int) bool {
	return func(_, method int) bool {
		for _, m := range methods {
			if m == method {
				return true
			}
		}
		return false
	}
}

func keys(names ...string) (groups []relay.Group) {
	for _, name := range names {
		groups = append(groups, relay.Group{Key: name, Messages: []relay.Message{{ID: name + "1", Key: name, Body: []byte("{}")}}})
	}
	return groups
}

// The broker confirms nothing on the first connection. A new connection works.
func TestConnectionWithoutConfirmationsIsReplaced(t *testing.T) {
	silent := func(connection, method int) bool { return connection == 1 && method == basicPublish }
	inSilence(t, silent, func(t *testing.T, p *peer, client *Client) {
		var log bytes.Buffer
		publisher, err := NewPublisher(client, "orders", &PublisherOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		failed := 0
		for ; failed < 10; failed++ {
			err := publisher.Publish(t.Context(), keys("a"))
			if err == nil {
				break
			}
			if relay.ReasonOf(err) != "send_timeout" {
				t.Errorf("error %v", err)
			}
		}
		if failed != 2 || p.dials.Load() != 2 {
			t.Errorf("%d timeouts and %d connections, want 2", failed, p.dials.Load())
		}
		if !strings.Contains(log.String(), "connection replaced") {
			t.Errorf("log %q", log.String())
		}
	})
}

// A confirmation between two timeouts shows that the connection works.
func TestConnectionWithConfirmationsBetweenTimeoutsStays(t *testing.T) {
	n := 0
	silent := func(_, method int) bool {
		if method == basicPublish {
			n++
		}
		return method == basicPublish && n%2 == 0
	}
	inSilence(t, silent, func(t *testing.T, p *peer, client *Client) {
		publisher, err := NewPublisher(client, "orders", nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			_ = publisher.Publish(t.Context(), keys("a"))
		}
		if p.dials.Load() != 1 {
			t.Errorf("%d connections, want 1", p.dials.Load())
		}
	})
}

// The first call after the loss of a connection opens a channel on a new one.
func TestLostConnectionFailsNoLaterCall(t *testing.T) {
	inSilence(t, nil, func(t *testing.T, p *peer, client *Client) {
		publisher, err := NewPublisher(client, "orders", &PublisherOptions{Channels: 1})
		if err != nil {
			t.Fatal(err)
		}
		for n := range int32(3) {
			if err := publisher.Publish(t.Context(), keys("a")); err != nil || p.dials.Load() != n+1 {
				t.Errorf("call %d on connection %d: %v", n, p.dials.Load(), err)
			}
			client.shared.Current().socket.abort()
			synctest.Wait()
		}
	})
}

// A broker that accepts no messages would not reply to the opening of a channel, and the connection would be
// replaced by one that is blocked too.
func TestNoChannelIsOpenedDuringAnAlarm(t *testing.T) {
	opened := 0
	silent := func(_, method int) bool {
		if method == channelOpen {
			opened++
		}
		return false
	}
	inSilence(t, silent, func(t *testing.T, p *peer, client *Client) {
		publisher, err := NewPublisher(client, "orders", nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := client.connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for step, reason := range []string{"memory", ""} {
			s.alarm.set(reason)
			err := publisher.Publish(t.Context(), keys("a"))
			synctest.Wait()
			if (err == nil) != (reason == "") || reason != "" && relay.ReasonOf(err) != "broker_full" || opened != step || p.dials.Load() != 1 {
				t.Errorf("alarm %q: %v with %d channels and %d connections", reason, err, opened, p.dials.Load())
			}
		}
	})
}

// The client library waits without a limit while heartbeats arrive.
func TestOperationsEndIfTheBrokerIsSilent(t *testing.T) {
	all := silentFor(connectionStartOk, connectionTuneOk, connectionOpen, channelOpen, channelClose, exchangeDeclare, queueDeclare, basicQos, basicConsume, basicPublish, confirmSelect, connectionClose)
	after := func(method int) func(int, int) bool { // silent from method on
		began := false
		return func(_, m int) bool { began = began || m == method; return began }
	}
	publish := func(ctx context.Context, client *Client) error {
		p, err := NewPublisher(client, "orders", nil)
		if err != nil {
			return err
		}
		return p.Publish(ctx, keys("a", "b"))
	}
	check := func(ctx context.Context, client *Client) error { return Check(ctx, client, "orders") }
	declare := func(ctx context.Context, client *Client) error {
		return Declare(ctx, client, "orders", Group{Name: "billing", Queues: 1})
	}
	for name, c := range map[string]struct {
		silent func(connection, method int) bool
		do     func(ctx context.Context, client *Client) error
		limit  time.Duration
	}{
		"publish, connecting":          {all, publish, dialTimeout},
		"publish, opening a channel":   {after(channelOpen), publish, requestTimeout},
		"publish, asking for confirms": {after(confirmSelect), publish, requestTimeout},
		"publish, sending":             {after(basicPublish), publish, 15 * time.Second},
		"check":                        {after(exchangeDeclare), check, requestTimeout},
		"declare":                      {after(queueDeclare), declare, declareTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			inSilence(t, c.silent, func(t *testing.T, _ *peer, client *Client) {
				began := time.Now()
				err := c.do(t.Context(), client)
				if took := time.Since(began); err == nil || took > c.limit {
					t.Errorf("error %v after %v, want one within %v", err, took, c.limit)
				}
			})
		})
	}
}

// The broker confirms a dead letter without a queue after it has returned it.
func TestDeadLetterWithoutAQueueIsNotAcknowledged(t *testing.T) {
	inSilence(t, nil, func(t *testing.T, p *peer, client *Client) {
		p.deliver = true
		p.noQueue.Store(true)
		var outcomes []consumer.Outcome
		o := &ConsumerOptions{Options: consumer.Options{Logger: slog.New(slog.DiscardHandler), Observe: func(_ context.Context, out consumer.Outcome) { outcomes = append(outcomes, out) }}}
		c, err := NewConsumer(client, Group{Name: "billing", Queues: 1}, func(context.Context, *consumer.Event) error { return consumer.DeadLetter("unknown", errors.New("no")) }, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() { _ = c.Run(ctx); close(stopped) }()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := p.acked.Load(); n != 0 || len(outcomes) == 0 || outcomes[0].Action != consumer.Abandoned || !strings.Contains(outcomes[0].Err.Error(), "does not exist") {
			t.Errorf("%d events acknowledged without a dead-letter queue: %+v", n, outcomes)
		}
		p.noQueue.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := p.acked.Load(); n != 1 {
			t.Errorf("%d events acknowledged after the queue was created, want 1", n)
		}
		cancel()
		<-stopped
	})
}

// A queue without a consumer keeps no wake-ups.
func TestWakeUpExpires(t *testing.T) {
	inSilence(t, nil, func(t *testing.T, p *peer, client *Client) {
		c, err := NewConsumer(client, Group{Name: "billing", Queues: 1}, func(context.Context, *consumer.Event) error { return nil }, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.wake(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		if header, _ := p.header.Load().(string); !strings.Contains(header, "\x05"+wakeUpExpiry) || !strings.Contains(header, typeWakeUp) {
			t.Errorf("the properties %q have no expiration of a minute", header)
		}
	})
}

// A later version declares the queues again. The broker refuses that if another limit is declared, although each
// negative one means that there is none. RabbitMQ 3 refuses all negative limits.
func TestQueuesAreDeclaredWithoutALimitOfDeliveries(t *testing.T) {
	for version, want := range map[string]int{"3.13.7": 0, "4.0.0": 3} {
		inSilence(t, nil, func(t *testing.T, p *peer, client *Client) {
			g := Group{Name: "billing", Queues: 2}
			err1 := g.declareLetters(t.Context(), client, limitsDeliveries(version))
			err2 := client.open(t.Context(), requestTimeout, func(_ *session, ch *amqp.Channel) error { return g.declare(ch, "events", version) })
			if err := errors.Join(err1, err2); err != nil {
				t.Error(err)
			}
			const limit = "x-delivery-limit"
			declared, _ := p.declared.Load().(string)
			if n, limits := strings.Count(declared, limit+"I\xff\xff\xff\xff"), strings.Count(declared, limit); n != want || limits != want || strings.Count(declared, "billing.") < 3 {
				t.Errorf("version %s: %d limits, of which %d are -1, want %d: %q", version, limits, n, want, declared)
			}
		})
	}
}

// The broker redelivers the events of a lost channel.
func TestHandlerEndsWithItsChannel(t *testing.T) {
	inSilence(t, nil, func(t *testing.T, p *peer, client *Client) {
		p.deliver = true
		var causes []error
		c, err := NewConsumer(client, Group{Name: "billing", Queues: 1}, func(ctx context.Context, _ *consumer.Event) error {
			<-ctx.Done()
			causes = append(causes, context.Cause(ctx))
			return ctx.Err()
		}, &ConsumerOptions{Options: consumer.Options{Logger: slog.New(slog.DiscardHandler), DrainTimeout: time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() { _ = c.Run(ctx); close(stopped) }()
		time.Sleep(time.Minute)
		client.shared.Current().socket.abort()
		time.Sleep(time.Minute)
		cancel()
		<-stopped
		if len(causes) != 2 || !errors.Is(causes[0], consumer.ErrLockLost) || !errors.Is(causes[1], consumer.ErrDrainTimeout) {
			t.Errorf("handlers ended because of %v, want the lost lock, and then the drain", causes)
		}
	})
}

// The broker redelivers them on the next channel.
func TestMessagesOfALostChannelAreNotTakenUp(t *testing.T) {
	inSilence(t, nil, func(t *testing.T, p *peer, client *Client) {
		p.deliver, p.further = true, 1
		var lost atomic.Bool
		var handled atomic.Int32
		c, err := NewConsumer(client, Group{Name: "billing", Queues: 1}, func(ctx context.Context, _ *consumer.Event) error {
			if !lost.Load() {
				<-ctx.Done() // so that the other message waits
				return ctx.Err()
			}
			handled.Add(1)
			return nil
		}, &ConsumerOptions{Prefetch: 1, Options: consumer.Options{Logger: slog.New(slog.DiscardHandler)}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() { _ = c.Run(ctx); close(stopped) }()
		time.Sleep(time.Minute)
		lost.Store(true)
		client.shared.Current().socket.abort()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := handled.Load(); n != 2 {
			t.Errorf("%d messages handled on the second channel, which had 2", n)
		}
		cancel()
		<-stopped
	})
}

// Another consumer receives its events, so this one settles and dead-letters none of them.
func TestHandlerEndsWithItsChannelDuringADrain(t *testing.T) {
	for name, end := range map[string]func(p *peer, client *Client){
		"connection lost":       func(_ *peer, client *Client) { client.shared.Current().socket.abort() },
		"subscription canceled": func(p *peer, _ *Client) { p.cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			var subscribed, closed atomic.Int32
			count := func(_, method int) bool {
				switch method {
				case basicConsume:
					subscribed.Add(1)
				case channelClose:
					closed.Add(1)
				}
				return false
			}
			inSilence(t, count, func(t *testing.T, p *peer, client *Client) {
				p.deliver = true
				var cause error
				var took time.Duration
				channelEnded := false
				c, err := NewConsumer(client, Group{Name: "billing", Queues: 1}, func(ctx context.Context, _ *consumer.Event) error {
					began := time.Now()
					select {
					case <-ctx.Done():
					case <-time.After(10 * time.Second):
					}
					cause, took = context.Cause(ctx), time.Since(began)
					time.Sleep(time.Second)
					channelEnded = name == "connection lost" || closed.Load() > 0
					return consumer.DeadLetter("unknown", errors.New("no"))
				}, &ConsumerOptions{Options: consumer.Options{Logger: slog.New(slog.DiscardHandler), DrainTimeout: 20 * time.Second}})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				stopped := make(chan struct{})
				go func() { _ = c.Run(ctx); close(stopped) }()
				time.Sleep(time.Second)
				cancel()
				time.Sleep(time.Second)
				synctest.Wait()
				subscribed.Store(0)
				closed.Store(0) // the search for more queues has closed a channel
				end(p, client)
				<-stopped
				synctest.Wait()
				if !errors.Is(cause, consumer.ErrLockLost) || took > 3*time.Second {
					t.Errorf("the handler ended after %v because of %v, want the lost lock after 2s", took, cause)
				}
				if !channelEnded {
					t.Error("the broker could not redeliver the other events of the channel until the handler returned")
				}
				if letter := p.header.Load(); letter != nil || p.acked.Load() != 0 {
					t.Errorf("%d events acknowledged, dead letter %q; another consumer has the event", p.acked.Load(), letter)
				}
				if subscribed.Load() != 0 {
					t.Error("the consumer subscribed again during its stop")
				}
			})
		})
	}
}

// Failures to connect or to subscribe do not stop a consumer, however many there are.
func TestConsumerReceivesAfterManyFailures(t *testing.T) {
	subscriptions := 0
	silent := func(_, method int) bool {
		if method == basicConsume {
			subscriptions++
		}
		return method == basicConsume && subscriptions <= 20
	}
	inSilence(t, silent, func(t *testing.T, p *peer, client *Client) {
		p.deliver = true
		p.down.Store(20)
		c, err := NewConsumer(client, Group{Name: "billing", Queues: 1}, func(context.Context, *consumer.Event) error { return nil }, &ConsumerOptions{Options: consumer.Options{Logger: slog.New(slog.DiscardHandler)}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() { _ = c.Run(ctx); close(stopped) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		if p.acked.Load() != 1 {
			t.Errorf("%d events acknowledged within an hour, want 1", p.acked.Load())
		}
		cancel()
		<-stopped
	})
}

// Otherwise the channels of a lost connection would wait for the end of its alarm.
func TestAlarmEndsWithItsConnection(t *testing.T) {
	s := &session{client: &Client{cfg: Config{Logger: slog.New(slog.DiscardHandler)}}}
	notes := make(chan amqp.Blocking, 1)
	notes <- amqp.Blocking{Active: true, Reason: "low on memory"}
	close(notes)
	raised, _ := s.alarm.channels()
	s.watch(notes)
	<-raised
	if err := s.alarm.err(); err != nil {
		t.Error(err)
	}
}

// A stop of a consumer does not wait for a silent broker.
func TestConsumerStopsIfTheBrokerIsSilent(t *testing.T) {
	inSilence(t, silentFor(channelClose, connectionClose), func(t *testing.T, _ *peer, client *Client) {
		c, err := NewConsumer(client, Group{Name: "billing", Queues: 1}, func(context.Context, *consumer.Event) error { return nil }, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan time.Time, 1)
		go func() { _ = c.Run(ctx); stopped <- time.Now() }()
		time.Sleep(time.Second)
		began := time.Now()
		cancel()
		if took := (<-stopped).Sub(began); took > requestTimeout {
			t.Errorf("stopped after %v", took)
		}
	})
}

// Heartbeats do not prolong the close of a connection.
func TestConnectionClosesIfTheBrokerIsSilent(t *testing.T) {
	inSilence(t, silentFor(connectionClose), func(t *testing.T, _ *peer, client *Client) {
		if err := Check(t.Context(), client, "orders"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_ = client.Close() // fails
		if took := time.Since(began); took > closeTimeout {
			t.Errorf("closed after %v", took)
		}
	})
}

// noted records whether a connection was closed.
type noted struct {
	net.Conn
	closed atomic.Bool
}

func (n *noted) Close() error {
	n.closed.Store(true)
	return n.Conn.Close()
}

// The client library returns an error for a broker without a known login, and keeps the connection.
func TestConnectionIsClosedAfterAFailedLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{mechanism: "OTHER"}
		var conn *noted
		client, err := NewClient(Config{URL: "amqp://localhost", Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			near, err := p.dial(ctx, network, address)
			conn = &noted{Conn: near}
			return conn, err
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(t.Context(), client, "orders"); err == nil || !conn.closed.Load() {
			t.Errorf("error %v, connection closed: %t", err, conn.closed.Load())
		}
		_ = conn.Close() // otherwise the broker would wait for it
		p.tasks.Wait()
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
}

// The client library says that a login or a virtual host was refused if the handshake ends without a reply. An
// operator would look for another password.
func TestHandshakeWithoutAReplyIsNoRefusal(t *testing.T) {
	want := func(t *testing.T, err, cause error) {
		if relay.ClassOf(err) != relay.Outage || relay.ReasonOf(err) != "unreachable" || !errors.Is(err, cause) || advise(err).Reason == "access_refused" {
			t.Errorf("error %v, advice %v; want an outage because of: %v", err, advise(err), cause)
		}
	}
	for name, method := range map[string]int{"login": connectionStartOk, "virtual host": connectionOpen} {
		t.Run("silence/"+name, func(t *testing.T) {
			inSilence(t, silentFor(method), func(t *testing.T, _ *peer, client *Client) {
				want(t, Check(t.Context(), client, "orders"), errSilent)
			})
		})
	}
	t.Run("connection lost", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var near net.Conn
			p := &peer{silent: func(_, method int) bool { return method == connectionOpen && near.Close() == nil }}
			client, err := NewClient(Config{URL: "amqp://localhost", Dial: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
				near, err = p.dial(ctx, network, address)
				return near, err
			}})
			if err != nil {
				t.Fatal(err)
			}
			want(t, Check(t.Context(), client, "orders"), amqp.ErrClosed)
			if err := client.Close(); err != nil {
				t.Error(err)
			}
			p.tasks.Wait()
		})
	})
}
