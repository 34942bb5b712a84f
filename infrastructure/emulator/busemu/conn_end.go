package busemu

import (
	"errors"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// close sends Close and ends the sessions. The peer gets a second to answer, because a socket
// that is reset earlier may lose our Close.
func (c *conn) close(e *amqp.Error) {
	if c.closeSent {
		return
	}
	c.settlements.flush()
	c.send(0, &amqp.Close{Error: e})
	c.closeSent = true
	c.releaseSessions()
	c.linger = time.AfterFunc(time.Second, func() { c.post(event{fn: func() { c.done = true }}) })
	if e != nil {
		c.log.Debug("connection closed", "condition", string(e.Condition), "description", e.Description)
	}
}

// fail closes the connection because of an error of the peer.
func (c *conn) fail(condition amqp.Symbol, description string) {
	c.close(&amqp.Error{Condition: condition, Description: description})
}

func (c *conn) releaseSessions() {
	for _, s := range c.sessions {
		s.release()
	}
	clear(c.sessions)
}

// teardown releases what a closed connection still has.
func (c *conn) teardown() {
	c.releaseSessions()
	for _, t := range []*time.Timer{c.linger, c.expiry} {
		if t != nil {
			t.Stop()
		}
	}
	c.closeSent = true
	c.drainInbox()
	if len(c.out) > 0 {
		c.toWrite <- c.out // after the buffer at the writer
		c.out = nil
	}
}

// detachDelay is the time between an entity's update and the detach of its links.
const detachDelay = 100 * time.Millisecond

// detachLater runs detach on the loop. If the entity was deleted, it waits for detachDelay
// first.
func (c *conn) detachLater(reason error, detach func()) {
	if !errors.Is(reason, broker.DetachForced) {
		detach()
		return
	}
	time.AfterFunc(detachDelay, func() { c.post(event{fn: detach}) })
}
