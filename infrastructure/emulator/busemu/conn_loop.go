package busemu

import (
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

func (c *conn) loop() {
	heartbeat := time.NewTicker(c.idle)
	defer heartbeat.Stop()
	var look <-chan time.Time
	if c.ns.o.EndIdle {
		ticker := time.NewTicker(idlePoll)
		defer ticker.Stop()
		look = ticker.C
	}
	stop := c.stop
	for !c.done {
		chunks := c.chunks
		if len(c.out)+c.writing > outputHigh || c.inflight > inflightHigh {
			chunks = nil
		}
		select {
		case ch, ok := <-chunks:
			if !ok {
				return
			}
			c.gotSince = true
			c.handleChunk(ch)
		case <-c.wake:
		case buf := <-c.written:
			c.free, c.writing = buf[:0], 0
		case <-heartbeat.C:
			c.keepAlive()
		case <-look:
			c.endIdle()
		case <-stop:
			stop = nil
			c.close(&amqp.Error{Condition: condConnectionForced, Description: "The connection was closed by the broker."})
		}
		c.drainInbox()
		c.transmit()
		c.flush()
	}
}

// keepAlive sends an empty frame if nothing else was sent since the last heartbeat. It closes
// the connection when the peer has been silent for the idle timeout.
func (c *conn) keepAlive() {
	if !c.sentSince && !c.closeSent {
		c.out = amqp.AppendEmptyFrame(c.out)
	}
	if c.gotSince {
		c.silent = 0
	} else if c.silent++; time.Duration(c.silent)*c.idle > 2*idleTimeout {
		c.close(&amqp.Error{Condition: condResourceLimit, Description: "The connection was idle for longer than its idle-time-out."})
	}
	c.sentSince, c.gotSince = false, false
}

func (c *conn) drainInbox() {
	for {
		c.mu.Lock()
		events := c.inbox
		c.inbox = c.spare[:0]
		c.mu.Unlock()
		if len(events) == 0 {
			c.spare = events
			break
		}
		for i := range events {
			if e := &events[i]; e.fn != nil {
				e.fn()
			} else {
				e.link.handleEvent(*e)
			}
			events[i] = event{}
		}
		c.spare = events
	}
	c.settlements.flush()
}

// transmit gives every session with output a turn.
func (c *conn) transmit() {
	if c.closeSent {
		return
	}
	waiting := c.busy[:0]
	for _, s := range c.busy {
		s.transmit()
		if s.busy = len(s.ready) > 0; s.busy { // its window is closed or the output is full
			waiting = append(waiting, s)
		}
	}
	clear(c.busy[len(waiting):])
	if len(waiting) > 1 { // the next call starts with another session
		first := waiting[0]
		copy(waiting, waiting[1:])
		waiting[len(waiting)-1] = first
	}
	c.busy = waiting
}

// flush passes the output to the writer if the writer is idle. Otherwise output accumulates,
// so that a busy connection writes few large pieces.
func (c *conn) flush() {
	if len(c.out) == 0 || c.free == nil {
		return
	}
	c.sentSince = true
	buf := c.out
	c.out, c.free, c.writing = c.free, nil, len(buf)
	c.toWrite <- buf // the writer is idle: does not block
}

// outputFull reports whether the peer reads too slowly to get messages.
func (c *conn) outputFull() bool { return len(c.out)+c.writing > outputHigh }

// send appends a frame to the output. After Close nothing more is sent.
func (c *conn) send(channel uint16, p amqp.Performative) {
	if c.closeSent {
		return
	}
	c.out = amqp.AppendFrame(c.out, amqp.FrameAMQP, channel, p)
}
