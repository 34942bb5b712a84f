package busemu

import (
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

const (
	// maxFrameSize is the largest frame read, and offered to peers.
	maxFrameSize = 65536
	// channelMax and idleTimeout are what the service answers in its Open.
	channelMax  = 4999
	idleTimeout = 240 * time.Second
	// outputHigh is how much output may wait for a slow reader before the
	// connection stops taking input and messages for it.
	outputHigh = 1 << 20
	// inflightHigh is how many bytes of messages a connection may have handed to
	// the broker without an answer before it stops taking input.
	inflightHigh = 16 << 20
	// partialMax is how many bytes of messages not yet complete a connection may
	// hold; beyond it the peer is cut off.
	partialMax = 32 << 20
	// owedMax is how many bytes of replies may wait for a receiver's credit before
	// requests are refused.
	owedMax = 16 << 20
)

// conn is one AMQP connection.
//
// Three goroutines serve it. The reader cuts the byte stream into whole frames.
// The loop owns everything below "owned by the loop": it handles frames, and
// events that other goroutines post. The writer writes what the loop hands it.
// A callback of the broker never touches a link; it posts.
type conn struct {
	srv *Server
	nc  net.Conn
	log *slog.Logger

	chunks  chan chunk  // reader to loop; closed by the reader
	recycle chan []byte // loop to reader: buffers of handled chunks
	toWrite chan []byte // loop to writer; closed by the loop
	written chan []byte // writer to loop: the buffer is free again
	stop    chan struct{}
	stopped sync.Once

	// owned by the loop
	peer         amqp.Open
	idle         time.Duration // a frame is sent at least that often
	sessions     map[uint16]*session
	busy         []*session // with links that are ready
	grants       grants
	expiry       *time.Timer // of the grant that expires first
	expires      time.Time
	cbs          cbsNode
	out          []byte // frames the writer has not been handed
	free         []byte // the other buffer; nil while the writer has it
	writing      int    // bytes the writer has
	scratch      []byte // encoding of the message being sent
	inflight     int    // bytes of messages at the broker
	partial      int    // bytes of messages not complete, or in open transactions
	withoutLinks int    // looks of endIdle in a row that found no link
	sentSince    bool   // since the last heartbeat
	gotSince     bool   // likewise
	silent       int    // heartbeats in a row without input
	closeSent    bool
	linger       *time.Timer // set by close
	done         bool        // leave the loop
	settlements  settlementRun
	// transactions are those declared and not discharged, by id.
	transactions map[string]*transaction

	owed atomic.Int64 // bytes of replies that were made and not sent

	mu    sync.Mutex // guards inbox and every link's arrivals; a leaf lock
	inbox []event
	spare []event       // owned by the loop: the other half of the inbox
	wake  chan struct{} // capacity 1
}

// event is something that happened outside the loop. Exactly one of fn and link
// is set: link events are frequent and carry no closure.
type event struct {
	fn   func()
	link eventHandler
	id   uint32 // delivery id
	n    int    // bytes
	err  error
}

type eventHandler interface{ handleEvent(e event) }

// post hands an event to the loop. Safe from any goroutine; does not block.
func (c *conn) post(e event) {
	c.mu.Lock()
	c.inbox = append(c.inbox, e)
	c.mu.Unlock()
	c.signal()
}

func (c *conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run serves the connection until either side ends it, and returns when its
// goroutines have ended.
func (c *conn) run() {
	defer func() { _ = c.nc.Close() }()
	if err := c.startTransport(); err != nil {
		c.log.Debug("transport ended", "error", err)
		return
	}
	fr := newFrameReader(c.nc)
	if err := c.handshake(fr); err != nil {
		c.log.Debug("handshake ended", "error", err)
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { c.readLoop(fr) })
	wg.Go(c.writeLoop)
	c.loop()
	c.teardown()
	close(c.toWrite)
	_ = c.nc.SetWriteDeadline(time.Now().Add(time.Second)) // for the last frames
	for range c.written {                                  // until the writer has ended
	}
	_ = c.nc.Close() // ends the reader
	for range c.chunks {
	}
	wg.Wait()
}

// shutdown asks the loop to close the connection. Safe from any goroutine.
func (c *conn) shutdown() { c.stopped.Do(func() { close(c.stop) }) }

func (c *conn) loop() {
	heartbeat := time.NewTicker(c.idle)
	defer heartbeat.Stop()
	var look <-chan time.Time
	if c.srv.o.EndIdle {
		ticker := time.NewTicker(idleLook)
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

// keepAlive sends an empty frame when nothing else was sent for a while, and gives
// up on a peer that has been silent for the time it was told.
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

// transmit gives every session with something to send a turn.
func (c *conn) transmit() {
	if c.closeSent {
		return
	}
	waiting := c.busy[:0]
	for _, s := range c.busy {
		s.transmit()
		if s.busy = len(s.ready) > 0; s.busy { // its window or the output is full
			waiting = append(waiting, s)
		}
	}
	clear(c.busy[len(waiting):])
	if len(waiting) > 1 { // another one is first next time
		first := waiting[0]
		copy(waiting, waiting[1:])
		waiting[len(waiting)-1] = first
	}
	c.busy = waiting
}

// flush hands the output to the writer if it is idle. While it is not, output
// gathers, so that a busy connection writes few and large pieces.
func (c *conn) flush() {
	if len(c.out) == 0 || c.free == nil {
		return
	}
	c.sentSince = true
	buf := c.out
	c.out, c.free, c.writing = c.free, nil, len(buf)
	c.toWrite <- buf // the writer is idle: does not block
}

// outputFull reports whether the peer reads too slowly to be sent messages.
func (c *conn) outputFull() bool { return len(c.out)+c.writing > outputHigh }

// send appends a frame to the output. After Close nothing more is sent.
func (c *conn) send(channel uint16, p amqp.Performative) {
	if c.closeSent {
		return
	}
	c.out = amqp.AppendFrame(c.out, amqp.FrameAMQP, channel, p)
}

// close sends Close and ends the sessions. The peer gets a second to answer
// with its own Close, so that it reads ours before the socket is reset.
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

// fail closes the connection because of what the peer did.
func (c *conn) fail(condition amqp.Symbol, description string) {
	c.close(&amqp.Error{Condition: condition, Description: description})
}

func (c *conn) releaseSessions() {
	for _, s := range c.sessions {
		s.release()
	}
	clear(c.sessions)
}

// teardown ends what is left of a connection that is gone.
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
		c.toWrite <- c.out // behind what the writer is at
		c.out = nil
	}
}
