package busemu

import (
	"bytes"
	"testing"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// controller is a peer with a coordinator, a receiver and two senders in one session.
type controller struct {
	*peer
	srv *Server
	n   uint32
}

const (
	toCoordinator uint32 = iota
	toQ
	toOut
	fromQ
)

func newController(t *testing.T) *controller {
	t.Helper()
	srv := startT(t, queues("q", "out"))
	for _, id := range []string{"1", "2"} {
		check(t, srv.Send(t.Context(), "q", Message{ID: id}))
	}
	c := &controller{peer: newPeer(t, srv).open(), srv: srv}
	c.send(0, &amqp.Attach{Name: "c", Handle: toCoordinator, Target: &amqp.Target{Coordinator: true}, Source: &amqp.Source{}, InitialDeliveryCount: amqp.Some(uint32(0))})
	c.attachSender(toQ, "q")
	c.attachSender(toOut, "out")
	c.attachReceiver(fromQ, "q")
	for range 4 {
		c.expect(amqp.CodeAttach)
	}
	return c
}

// deliver sends a message and returns the state of its answer.
func (c *controller) deliver(handle uint32, state, message []byte) amqp.State {
	c.t.Helper()
	c.n++
	c.send(0, &amqp.Transfer{Handle: handle, DeliveryID: amqp.Some(c.n), DeliveryTag: []byte{byte(c.n)}, MessageFormat: amqp.Some(uint32(0)), State: state}, message...)
	return c.answer()
}

func (c *controller) answer() amqp.State { return c.disposition(true) }

func (c *controller) disposition(settled bool) amqp.State {
	c.t.Helper()
	d := c.expect(amqp.CodeDisposition).(*amqp.Disposition)
	s, err := amqp.DecodeState(d.State)
	if err != nil || d.Settled != settled {
		c.t.Fatalf("disposition %+v: %v", d, err)
	}
	return s
}

func (c *controller) declare() []byte {
	c.t.Helper()
	s := c.deliver(toCoordinator, nil, (&amqp.TransactionRequest{}).Append(nil))
	if s.Code != amqp.CodeDeclared || len(s.TxnID) == 0 {
		c.t.Fatalf("declared with %+v", s)
	}
	return s.TxnID
}

func (c *controller) discharge(txn []byte, fail bool) amqp.State {
	c.t.Helper()
	return c.deliver(toCoordinator, nil, (&amqp.TransactionRequest{Discharge: true, TxnID: txn, Fail: fail}).Append(nil))
}

// receive takes n messages of q and returns the id of the first delivery.
func (c *controller) receive(n uint32) uint32 {
	c.t.Helper()
	c.send(0, &amqp.Flow{Handle: amqp.Some(fromQ), LinkCredit: amqp.Some(n), IncomingWindow: 5000, NextOutgoingID: c.n})
	first := c.expect(amqp.CodeTransfer).(*amqp.Transfer).DeliveryID.Value
	for range n - 1 {
		c.expect(amqp.CodeTransfer)
	}
	return first
}

func (c *controller) want(queue string, n int) {
	c.t.Helper()
	got, err := c.srv.Peek(queue, 10)
	if err != nil || len(got) != n {
		c.t.Errorf("%d messages in %s, want %d: %v", len(got), queue, n, err)
	}
}

var oneMessage = amqp.AppendData(nil, []byte("x"))

// TestTransaction: all sends and settlements of a transaction happen at its discharge, or
// none.
func TestTransaction(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]bool{"commit": false, "roll back": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newController(t)
			id := c.receive(2)
			txn := c.declare()
			in := transactional(txn, amqp.StateAccepted)
			if s := c.deliver(toOut, transactional(txn, nil), oneMessage); !bytes.Equal(s.Append(nil), in) {
				t.Errorf("sent with %+v", s)
			}
			c.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, First: id, State: in})
			if s := c.disposition(false); !bytes.Equal(s.Append(nil), in) {
				t.Errorf("settled with %+v", s)
			}
			// Settled by the peer too, so a rollback abandons it.
			c.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, First: id + 1, Settled: true, State: in})
			c.want("q", 2)
			c.want("out", 0)
			s := c.discharge(txn, fail)
			if !fail { // first the delivery that the peer has not settled
				if !bytes.Equal(s.Append(nil), in) {
					t.Errorf("committed with %+v", s)
				}
				s = c.answer()
			}
			if s.Code != amqp.CodeAccepted {
				t.Fatalf("discharged with %+v", s.Error)
			}
			n := must(c.srv.Counters("q"))(t)
			if !fail {
				c.want("q", 0)
				c.want("out", 1)
			} else {
				c.want("q", 2)
				c.want("out", 0)
				if n.Abandoned != 1 {
					t.Errorf("after the roll-back: %+v", n)
				}
				c.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, First: id, State: amqp.StateReleased})
				if s := c.answer(); s.Code != amqp.CodeReleased {
					t.Errorf("released after the roll-back: %+v", s)
				}
			}
			if s := c.discharge(txn, false); s.Code != amqp.CodeRejected || s.Error.Condition != condUnknownTransaction {
				t.Errorf("discharged twice: %+v", s)
			}
		})
	}
}

// TestTransactionWithLostLockFails: none of its work happens, and the discharge is rejected.
func TestTransactionWithLostLockFails(t *testing.T) {
	t.Parallel()
	c := newController(t)
	id := c.receive(1)
	txn := c.declare()
	c.deliver(toOut, transactional(txn, nil), oneMessage)
	c.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, First: id, State: transactional(txn, amqp.StateAccepted)})
	c.disposition(false)
	c.srv.Advance(10 * 60e9) // the lock is lost
	if s := c.discharge(txn, false); s.Code != amqp.CodeRejected || s.Error.Condition != condTransactionRollback {
		t.Errorf("discharged with %+v", s)
	}
	c.want("q", 2)
	c.want("out", 0)
}

// TestTransactionsRefused: unknown transactions, and work that one transaction may not span,
// are refused.
func TestTransactionsRefused(t *testing.T) {
	t.Parallel()
	c := newController(t)
	if s := c.deliver(toOut, transactional([]byte("none"), nil), oneMessage); s.Code != amqp.CodeRejected || s.Error.Condition != condUnknownTransaction {
		t.Errorf("unknown transaction: %+v", s)
	}
	txn := c.declare()
	for range transactionWork {
		c.deliver(toQ, transactional(txn, nil), oneMessage)
	}
	if s := c.deliver(toQ, transactional(txn, nil), oneMessage); s.Code != amqp.CodeRejected {
		t.Errorf("message 101: %+v", s)
	}
	if s := c.deliver(toCoordinator, nil, oneMessage); s.Code != amqp.CodeRejected || s.Error.Condition != condDecodeError {
		t.Errorf("not a request: %+v", s)
	}
	c.send(0, &amqp.Detach{Handle: toCoordinator, Closed: true})
	c.expect(amqp.CodeDetach)
	if s := c.deliver(toQ, transactional(txn, nil), oneMessage); s.Code != amqp.CodeRejected || s.Error.Condition != condUnknownTransaction {
		t.Errorf("after its coordinator: %+v", s)
	}
	c.want("q", 2)
}

// TestSendVia: a message sent via an entity goes to its destination, in one transaction with a
// settlement in that entity, across two sessions.
func TestSendVia(t *testing.T) {
	t.Parallel()
	for _, via := range []bool{true, false} {
		c := newController(t)
		id := c.receive(1)
		txn := c.declare()
		c.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, First: id, State: transactional(txn, amqp.StateAccepted)})
		c.disposition(false)
		c.send(1, &amqp.Begin{IncomingWindow: 100, OutgoingWindow: 100})
		c.expect(amqp.CodeBegin)
		attach := &amqp.Attach{
			Name: "via", Target: &amqp.Target{Address: amqp.Some("out")}, Source: &amqp.Source{}, InitialDeliveryCount: amqp.Some(uint32(0)),
		}
		if via {
			attach.Target.Address = amqp.Some("q")
			attach.Properties = amqp.Map{{Key: amqp.Symbol(transferDestination), Value: "out"}}
		}
		c.send(1, attach)
		c.expect(amqp.CodeAttach)
		c.send(1, &amqp.Transfer{DeliveryID: amqp.Some(uint32(0)), DeliveryTag: []byte{1}, MessageFormat: amqp.Some(uint32(0)), State: transactional(txn, nil)}, oneMessage...)
		s := c.answer()
		if !via { // another entity, from another session than the coordinator's
			if s.Code != amqp.CodeRejected || s.Error.Condition != amqp.Symbol(broker.NotAllowed) {
				t.Errorf("sent across entities: %+v", s)
			}
			continue
		}
		c.want("out", 0)
		if s := c.discharge(txn, false); s.Code != amqp.CodeTransactionalState {
			t.Errorf("committed with %+v", s)
		}
		if s := c.answer(); s.Code != amqp.CodeAccepted {
			t.Fatalf("discharged with %+v", s.Error)
		}
		c.want("q", 1)
		c.want("out", 1)
	}
}

// TestSendViaUnknownEntityIsRefused: an unknown destination is refused at the attach.
func TestSendViaUnknownEntityIsRefused(t *testing.T) {
	t.Parallel()
	p := newPeer(t, startT(t, queues("q"))).open()
	p.send(0, &amqp.Attach{
		Name: "via", Target: &amqp.Target{Address: amqp.Some("q")}, Source: &amqp.Source{}, InitialDeliveryCount: amqp.Some(uint32(0)),
		Properties: amqp.Map{{Key: amqp.Symbol(transferDestination), Value: "out"}},
	})
	if d := p.expect(amqp.CodeDetach).(*amqp.Detach); d.Error == nil || d.Error.Condition != amqp.Symbol(broker.NotFound) {
		t.Errorf("detached with %+v", d.Error)
	}
}
