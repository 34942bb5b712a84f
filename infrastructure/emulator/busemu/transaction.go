package busemu

import (
	"cmp"
	"crypto/rand"
	"strings"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// Transactions. A controller declares a transaction at a coordinator, names it in the states
// of transfers and dispositions, and discharges it. The work of a transaction is collected
// here and executed as a whole at the discharge.
//
// A message settled in a transaction stays locked until the discharge, and its delivery stays
// unsettled; the peer learns of the settlement at the commit. After a rollback the message is
// still locked and the peer may settle it (Qpid Proton releases it). If the peer has already
// settled the delivery (Qpid JMS), the message is abandoned. A transaction is rolled back if
// it is not discharged within transactionTimeout or its coordinator's link ends.
//
// It refuses messages from a second queue or topic, and distributed transactions (global-id).
// It sends to other entities only if the links share their session with the coordinator's
// link, as the SDKs do for transactions across entities.
//
// Source: AMQP 1.0 part 4.

const (
	condUnknownTransaction  amqp.Symbol = "amqp:transaction:unknown-id"
	condTransactionRollback amqp.Symbol = "amqp:transaction:rollback"
	condTransactionTimeout  amqp.Symbol = "amqp:transaction:timeout"

	transactionTimeout = 2 * time.Minute
	// transactionWork limits the messages that one transaction sends and settles.
	transactionWork = 100
	// transactionsOpen limits the open transactions of one connection.
	transactionsOpen = 1000
)

// transaction has the collected work of one transaction. The connection's loop owns it.
type transaction struct {
	coordinator *incomingLink
	until       time.Time
	work        []broker.Work
	settled     []func()                    // called at the commit
	back        []func()                    // called at the rollback
	source      string                      // top-level entity of the messages it settles
	partitions  map[string]broker.Partition // by entity; one for each partitioned entity
	first       string                      // entity of the first work
	bytes       int                         // of messages, counted in conn.partial
}

// coordinate answers a request to the coordinator.
func (l *incomingLink) coordinate(message []byte) {
	c, id := l.s.c, l.deliveryID
	q, err := amqp.DecodeTransactionRequest(message)
	if err != nil {
		l.finish(id, decodeError(err))
		return
	}
	if !q.Discharge {
		l.declare(id)
		return
	}
	t, err := c.transaction(q.TxnID)
	if err != nil {
		l.finish(id, err)
		return
	}
	c.forgetTransaction(string(q.TxnID), t)
	if q.Fail {
		t.rollBack()
		l.finish(id, nil)
		return
	}
	c.ns.broker.Commit(t.work, func(err error) {
		c.post(event{fn: func() {
			if err != nil {
				t.rollBack()
				err = &amqp.Error{Condition: condTransactionRollback, Description: "The transaction was rolled back: " + err.Error()}
			} else {
				t.tell()
			}
			l.finish(id, err)
		}})
	})
}

func (l *incomingLink) declare(id uint32) {
	c := l.s.c
	if len(c.transactions) >= transactionsOpen {
		l.finish(id, &amqp.Error{Condition: condResourceLimit, Description: "too many open transactions on one connection"})
		return
	}
	name := make([]byte, 16)
	_, _ = rand.Read(name) // never fails
	if c.transactions == nil {
		c.transactions = make(map[string]*transaction)
	}
	c.transactions[string(name)] = &transaction{coordinator: l, until: c.ns.o.Now().Add(transactionTimeout)}
	l.finishAs((&amqp.State{Code: amqp.CodeDeclared, TxnID: name}).Append(nil))
}

// transaction finds an open transaction.
func (c *conn) transaction(id []byte) (*transaction, error) {
	t, ok := c.transactions[string(id)]
	if !ok {
		return nil, &amqp.Error{Condition: condUnknownTransaction, Description: "The transaction is not declared, or is over."}
	}
	if c.ns.o.Now().After(t.until) {
		c.forgetTransaction(string(id), t)
		t.rollBack()
		return nil, &amqp.Error{Condition: condTransactionTimeout, Description: "The transaction was rolled back: it was not discharged in time."}
	}
	return t, nil
}

func (c *conn) forgetTransaction(id string, t *transaction) {
	delete(c.transactions, id)
	c.partial -= t.bytes
	t.bytes = 0
}

// endTransactions rolls back the transactions that a coordinator's link leaves open.
func (l *incomingLink) endTransactions() {
	for id, t := range l.s.c.transactions {
		if t.coordinator == l {
			l.s.c.forgetTransaction(id, t)
			t.rollBack()
		}
	}
}

func (t *transaction) rollBack() {
	for _, back := range t.back {
		back()
	}
	t.back = nil
}

func (t *transaction) tell() {
	for _, settled := range t.settled {
		settled()
	}
}

// add adds a piece of work. path is the entity of the link, at the partition of the message.
func (t *transaction) add(s *session, path string, at broker.Partition, w broker.Work) error {
	if len(t.work) >= transactionWork {
		return &amqp.Error{Condition: condResourceLimit, Description: "A transaction sends and settles 100 messages at most."}
	}
	top, _, _ := strings.Cut(strings.ToLower(path), "/")
	alone := t.coordinator.s != s
	if t.first == "" {
		t.first = top
	}
	if w.Batch == nil && t.source == "" {
		t.source = top
	}
	if alone && top != t.first || w.Batch == nil && top != t.source {
		return &broker.Error{Condition: broker.NotAllowed, Description: "Transactions cannot span multiple top-level entities such as queue or topic. The transaction has begun with '" + t.first + "'."}
	}
	if err := t.keepTo(at); err != nil {
		return err
	}
	t.work = append(t.work, w)
	return nil
}

// sendIn sends messages in a transaction.
func (l *incomingLink) sendIn(txn []byte, batch []broker.Message, size int) {
	c := l.s.c
	err := func() error {
		t, err := c.transaction(txn)
		if err != nil {
			return err
		}
		at, err := l.target.CheckSend(batch)
		if err != nil {
			return err
		}
		if l.via != "" {
			at = broker.Partition{} // the transaction is in the via entity
		} else if err := mayBeIn(at); err != nil {
			return err
		}
		if c.partial+size > partialMax {
			return &amqp.Error{Condition: condResourceLimit, Description: "The open transactions of one connection hold too much."}
		}
		if err := t.add(l.s, cmp.Or(l.via, l.path), at, broker.Work{Path: l.path, Batch: batch}); err != nil {
			return err
		}
		t.bytes += size
		c.partial += size
		return nil
	}()
	if err != nil {
		l.finishNow(err)
		return
	}
	l.finishAs(transactional(txn, amqp.StateAccepted))
}

// settleIn settles a delivery in a transaction.
func (l *outgoingLink) settleIn(d *delivery, state *amqp.State, settled bool) {
	c := l.s.c
	fail := func(err error) {
		d.settling = true
		l.handleEvent(event{id: d.id, err: err})
	}
	outcome := amqp.State{}
	if state.Outcome != nil {
		var err error
		if outcome, err = amqp.DecodeState(state.Outcome); err != nil {
			l.s.end(condDecodeError, err.Error())
			return
		}
	}
	t, err := c.transaction(state.TxnID)
	if err == nil && l.browser {
		err = &broker.Error{Condition: broker.NotAllowed, Description: "A browser settles nothing."}
	}
	var at broker.Partition
	if err == nil {
		at, err = l.source.CheckLock(d.token)
	}
	if err == nil {
		err = t.add(l.s, l.node.path, at, broker.Work{Path: l.node.path, Token: d.token, Outcome: outcomeOf(&outcome)})
	}
	if err != nil {
		fail(err)
		return
	}
	d.settling, d.echo = true, transactional(state.TxnID, echoOf(&outcome))
	if settled {
		delete(l.s.unsettled, d.id)
		t.back = append(t.back, func() { l.source.Settle(d.token, broker.Outcome{Kind: broker.Abandon}, func(error) {}) })
		return
	}
	c.settlements.flush()
	l.s.send(&amqp.Disposition{Role: amqp.RoleSender, First: d.id, State: d.echo})
	t.settled = append(t.settled, func() { l.handleEvent(event{id: d.id}) })
	t.back = append(t.back, func() { d.settling = false })
}

func transactional(txn, outcome []byte) []byte {
	return (&amqp.State{Code: amqp.CodeTransactionalState, TxnID: txn, Outcome: outcome}).Append(nil)
}
