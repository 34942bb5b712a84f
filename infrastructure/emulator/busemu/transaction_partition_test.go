package busemu

import (
	"fmt"
	"strings"
	"testing"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

// The Go SDK has no transactions, so the peer speaks the protocol itself.

func encoded(t *testing.T, m Message) []byte {
	t.Helper()
	return must(m.encode())(t)
}

// TestTransactionOverPartitionsIsRefused: a transaction has one partition of a partitioned
// entity. Work for a second one is refused, and the rest can be committed.
func TestTransactionOverPartitionsIsRefused(t *testing.T) {
	t.Parallel()
	q := Queue{Partitioned: true}
	q.Name = "q"
	out := q
	out.Name = "out"
	srv := startT(t, &Options{Topology: &Topology{Queues: []Queue{q, out}}})
	for i := range 32 {
		check(t, srv.Send(t.Context(), "q", Message{ID: "m", PartitionKey: fmt.Sprint(i)}))
	}
	c := &controller{peer: newPeer(t, srv).open(), srv: srv}
	c.send(0, &amqp.Attach{Name: "c", Handle: toCoordinator, Target: &amqp.Target{Coordinator: true}, Source: &amqp.Source{}, InitialDeliveryCount: amqp.Some(uint32(0))})
	c.attachSender(toQ, "q")
	c.attachSender(toOut, "out")
	c.attachReceiver(fromQ, "q")
	for range 4 {
		c.expect(amqp.CodeAttach)
	}
	x, y, session := "x", "y", "x"
	txn := c.declare()
	in := transactional(txn, nil)
	for name, step := range map[string]struct {
		handle  uint32
		message Message
	}{"no key": {toQ, Message{ID: "1"}}, "no key, elsewhere": {toOut, Message{ID: "1"}}} {
		if s := c.deliver(step.handle, in, encoded(t, step.message)); s.Code != amqp.CodeRejected || !strings.Contains(s.Error.Description, "needs a partition key") {
			t.Errorf("%s: %+v", name, s)
		}
	}
	for _, step := range []struct {
		name    string
		handle  uint32
		message Message
		refused bool
	}{
		{"first", toOut, Message{ID: "1", PartitionKey: x}, false},
		{"another key", toOut, Message{ID: "2", PartitionKey: y}, true},
		{"the same key", toOut, Message{ID: "3", PartitionKey: x}, false},
		{"a session of that name", toOut, Message{ID: "4", Session: &session}, false},
		{"another entity", toQ, Message{ID: "5", PartitionKey: y}, false},
	} {
		s := c.deliver(step.handle, in, encoded(t, step.message))
		if refused := s.Code == amqp.CodeRejected; refused != step.refused {
			t.Errorf("%s: %+v", step.name, s.Error)
		} else if refused && !strings.Contains(s.Error.Description, "cannot span multiple entities or partitions") {
			t.Errorf("%s: %s", step.name, s.Error.Description)
		}
	}
	if s := c.discharge(txn, false); s.Code != amqp.CodeAccepted {
		t.Fatalf("discharged with %+v", s.Error)
	}
	c.want("out", 3)

	// Settlements count too.
	txn = c.declare()
	in = transactional(txn, amqp.StateAccepted)
	id := c.receive(2)
	c.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, First: id, State: in})
	c.disposition(false)
	c.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, First: id + 1, State: in})
	if s := c.answer(); s.Code != amqp.CodeRejected {
		t.Errorf("settled in a second partition: %+v", s)
	}
	if s := c.deliver(toQ, transactional(txn, nil), encoded(t, Message{ID: "6", PartitionKey: "of nobody"})); s.Code != amqp.CodeRejected {
		t.Errorf("sent to a second partition: %+v", s)
	}
}
