package busemu

import (
	"context"
	"slices"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
	"feedbox/tests/fuzzseed"
)

// FuzzConnection: bytes after an Open never make the broker panic or leak a goroutine.
func FuzzConnection(f *testing.F) {
	session := frameOf(0, (&amqp.Begin{IncomingWindow: 10, OutgoingWindow: 10, HandleMax: 10}).Append(nil))
	link := func(p *amqp.Attach) []byte {
		return append(append([]byte(nil), session...), frameOf(0, p.Append(nil))...)
	}
	f.Add(session)
	f.Add(link(&amqp.Attach{Name: "r", Role: amqp.RoleReceiver, Source: &amqp.Source{Address: amqp.Some("q")}}))
	f.Add(append(link(&amqp.Attach{Name: "s", Target: &amqp.Target{Address: amqp.Some("q")}}),
		frameOf(0, append((&amqp.Transfer{DeliveryID: amqp.Some(uint32(0)), DeliveryTag: []byte{1}}).Append(nil), amqp.AppendData(nil, []byte("x"))...))...))
	f.Add(append(link(&amqp.Attach{Name: "c", Target: &amqp.Target{Address: amqp.Some("$cbs")}}),
		frameOf(0, append((&amqp.Transfer{DeliveryID: amqp.Some(uint32(0)), DeliveryTag: []byte{1}}).Append(nil), amqp.AppendValueSection(nil, "token")...))...))
	srv, err := Start(&Options{AdminAddr: "-", Addr: "-", Topology: &Topology{Queues: []Queue{{Name: "q"}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = srv.Close() })
	f.Fuzz(func(t *testing.T, b []byte) {
		nc, err := srv.Dial(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		read := make(chan struct{})
		go func() {
			defer close(read)
			buf := make([]byte, 4096)
			for {
				if _, err := nc.Read(buf); err != nil {
					return
				}
			}
		}()
		_ = nc.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = nc.Write(append(opening(), b...))
		_ = nc.Close()
		<-read
	})
}

// FuzzManagement: a request to $management never makes the broker panic. Every request that
// decodes gets one reply, which decodes.
func FuzzManagement(f *testing.F) {
	fuzzseed.Add(f)
	var names []string
	for name := range mgmtOperations {
		names = append(names, name)
	}
	slices.Sort(names)
	body := func(m amqp.Map) []byte { return amqp.AppendValue(nil, m) }
	message := amqp.AppendData(nil, []byte("x"))
	token := amqp.List{amqp.UUID{1}}
	for i := range names {
		f.Add(uint8(i), body(amqp.Map{
			{Key: "lock-tokens", Value: token},
			{Key: "sequence-numbers", Value: amqp.LongArray([]int64{1, 7})},
			{Key: "session-id", Value: "s"},
			{Key: "from-sequence-number", Value: int64(0)},
			{Key: "message-count", Value: int32(9)},
			{Key: "messages", Value: amqp.List{amqp.Map{{Key: "message", Value: message}}}},
			{Key: "disposition-status", Value: "completed"},
			{Key: "skip", Value: int32(0)},
			{Key: "top", Value: int32(10)},
			{Key: "rule-name", Value: "r"},
		}))
	}
	srv, err := Start(&Options{AdminAddr: "-", Addr: "-", Topology: &Topology{
		Queues: []Queue{{Name: "q"}, {Name: "s", RequiresSession: true}},
		Topics: []Topic{{Name: "t", Subscriptions: []Subscription{{Name: "sub"}}}},
	}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = srv.Close() })
	f.Fuzz(func(t *testing.T, operation uint8, body []byte) {
		for _, path := range []string{"q", "s", "t/Subscriptions/sub"} {
			c := &conn{ns: srv.namespace, log: srv.log, mailbox: newMailbox()}
			c.grants.all = allRights
			s := newSession(c, 0, &amqp.Begin{})
			c.sessions = map[uint16]*session{0: s}
			n := node{kind: nodeManagement, path: path}
			l := &outgoingLink{linkBase: linkBase{s: s}, node: n}
			s.links[0] = l
			w := amqp.BeginMapSection(nil, amqp.CodeApplicationProperties)
			w.String("operation", names[int(operation)%len(names)])
			request := append(append(w.Finish(), 0, 0x53, amqp.CodeValue), body...)
			(&managementNode{ns: srv.namespace, path: path}).handleRequest(s, request)
			deadline := time.Now().Add(time.Minute) // rule operations answer from a goroutine
			for c.drainInbox(); len(l.replies) == 0; c.drainInbox() {
				if _, err := parseRequest(request); err != nil {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("no reply to %s", names[int(operation)%len(names)])
				}
				<-c.wake
			}
			if len(l.replies) != 1 {
				t.Fatalf("%d replies", len(l.replies))
			}
			if _, err := parseRequest(l.replies[0]); err != nil {
				t.Fatalf("the reply does not decode: %v", err)
			}
		}
	})
}

// FuzzReadMessages: a delivery never makes the broker panic, and an accepted one is delivered
// as an AMQP message.
func FuzzReadMessages(f *testing.F) {
	fuzzseed.Add(f)
	var p amqp.Properties
	p.SetText(amqp.MessageID, "id")
	p.SetText(amqp.GroupID, "session")
	w := amqp.BeginMapSection((&amqp.Header{TTL: ttlHeader(time.Hour)}).Append(nil), amqp.CodeMessageAnnotations)
	w.Symbol(annotationPartitionKey, "session")
	w.Timestamp(annotationScheduledTime, amqp.TimestampOf(time.Unix(1e9, 0)))
	one := amqp.AppendData(p.Append(w.Finish()), []byte("body"))
	f.Add(uint32(0), one)
	f.Add(uint32(amqp.BatchFormat), amqp.AppendData(amqp.AppendData(p.Append(nil), one), one))
	info := broker.EntityInfo{MaxMessageSize: broker.StandardMaxMessageSize, MaxBatchSize: broker.StandardMaxMessageSize}
	f.Fuzz(func(t *testing.T, format uint32, b []byte) {
		batch, err := readMessages(b, format, &info)
		if err != nil {
			return
		}
		for i := range batch {
			m := &batch[i]
			d := broker.Delivery{
				Payload: m.Payload, SequenceNumber: 1, EnqueuedAt: time.Unix(1, 0), DeliveryCount: 2, LockedUntil: time.Unix(2, 0),
				MessageID: m.MessageID, SessionID: m.SessionID, HasSession: m.HasSession, DeadLetterReason: "r",
				Properties: []broker.Property{{Name: "p", Value: amqp.AppendValue(nil, "v")}},
			}
			out, err := appendDelivery(nil, &d, true)
			if err != nil {
				t.Fatalf("taken, and not to be sent: %v", err)
			}
			again, err := readMessage(out, &info)
			if err != nil {
				t.Fatalf("sent, and not to be read: %v", err)
			}
			if again.MessageID != m.MessageID || again.SessionID != m.SessionID || again.HasSession != m.HasSession {
				t.Errorf("%+v came out as %+v", m, again)
			}
			_, _ = decodeFields(out) // a filter's error only dead-letters or skips the message
		}
	})
}
