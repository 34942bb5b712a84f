package busemu

import (
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
	"feedbox/infrastructure/httpapi/limit"
)

const (
	// maxFrameSize is the largest frame accepted, and offered to peers.
	maxFrameSize = 65536
	// channelMax and idleTimeout are the service's values in its Open.
	channelMax  = 4999
	idleTimeout = 240 * time.Second
	// outputHigh limits the output that waits for a slow peer. Above it the connection takes
	// no more input and no more messages for the peer.
	outputHigh = 1 << 20
	// inflightHigh limits the bytes of messages at the broker without an answer. Above it the
	// connection takes no more input.
	inflightHigh = 16 << 20
	// partialMax limits the bytes of incomplete messages. Above it the connection is closed.
	partialMax = 32 << 20
	// owedMax limits the bytes of replies that wait for a receiver's credit. Above it requests
	// are refused, above twice as much without a reply, which has an id of the peer's choice.
	owedMax = 16 << 20
)

var errTooManyReplies = &broker.Error{Condition: broker.ServerBusy, Description: "Too many replies wait for the receiver's credit."}

// conn is one AMQP connection.
//
// Three goroutines serve it. The reader cuts the byte stream into whole frames. The loop owns
// the fields below "owned by the loop"; it handles frames, and events posted by other
// goroutines. The writer writes the loop's output. A callback of the broker never touches a
// link; it posts an event.
type conn struct {
	ns  *namespace
	nc  net.Conn
	log *slog.Logger

	chunks  chan chunk  // reader to loop; closed by the reader
	recycle chan []byte // loop to reader: buffers of handled chunks
	toWrite chan []byte // loop to writer; closed by the loop
	written chan []byte // writer to loop: the buffer is free
	stop    chan struct{}
	stopped sync.Once

	// owned by the loop
	peer         amqp.Open
	idle         time.Duration // interval of heartbeats
	sessions     map[uint16]*session
	busy         []*session // their links have messages to send
	grants       grants
	expiry       *time.Timer // of the grant that expires first
	expires      time.Time
	cbs          cbsNode
	out          []byte // frames not passed to the writer yet
	free         []byte // the other buffer; nil while the writer uses it
	writing      int    // bytes at the writer
	scratch      []byte // buffer to encode the next message
	inflight     int    // bytes of messages at the broker
	partial      int    // bytes of incomplete messages, and of messages in open transactions
	withoutLinks int    // polls of endIdle in a row that found no link
	sentSince    bool   // since the last heartbeat
	gotSince     bool   // since the last heartbeat
	silent       int    // heartbeats in a row without input
	closeSent    bool
	linger       *time.Timer // set by close
	done         bool        // leave the loop
	settlements  settlementRun
	// transactions has the open transactions by id.
	transactions map[string]*transaction
	// management makes the node for requests about an entity.
	management func(path string) requestNode

	owed atomic.Int64 // bytes of replies made and not sent

	mailbox
}

// run serves the connection until either side ends it. It returns when its goroutines have
// ended.
func (c *conn) run() {
	accepted := c.nc
	defer func() { _ = c.nc.Close() }()
	if err := c.startTransport(); err != nil {
		c.log.Debug("connection closed during transport setup", "error", err)
		return
	}
	fr := newFrameReader(c.nc)
	if err := (&handshake{c, fr}).run(); err != nil {
		c.log.Debug("connection closed during handshake", "error", err)
		return
	}
	limit.ProtectConn(accepted)
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
