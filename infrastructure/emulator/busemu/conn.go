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
	ns  *namespace
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
	// management makes the node that answers the requests about an entity.
	management func(path string) requestNode

	owed atomic.Int64 // bytes of replies that were made and not sent

	mailbox
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
	if err := (&handshake{c, fr}).run(); err != nil {
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
