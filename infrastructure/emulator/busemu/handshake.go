package busemu

import (
	"errors"
	"fmt"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

// handshake is the start of a connection.
type handshake struct {
	*conn
	f *frameReader
}

// handshakeTimeout is the time for a peer to send its Open.
const handshakeTimeout = 15 * time.Second

// run exchanges protocol headers, runs the SASL dialogue and exchanges Opens. It reads and
// writes the connection directly, because nothing else runs on it yet.
//
// It supports AMQP 1.0 with SASL. Any other protocol header is answered with the SASL header,
// as section 2.2 demands.
//
// Source: AMQP 1.0 part 2, sections 2.2 and 2.4.1; part 5, section 5.3.
func (c *handshake) run() error {
	_ = c.nc.SetDeadline(time.Now().Add(handshakeTimeout))
	defer func() { _ = c.nc.SetDeadline(time.Time{}) }()
	id, err := c.protocolHeader()
	if err != nil {
		return err
	}
	if id == amqp.ProtocolSASL {
		if err := c.sasl(); err != nil {
			return err
		}
		if id, err = c.protocolHeader(); err != nil {
			return err
		}
	} else {
		return c.refuseHeader(errors.New("connection without SASL"))
	}
	if id != amqp.ProtocolAMQP {
		return c.refuseHeader(fmt.Errorf("protocol %d after SASL", id))
	}
	if err := c.write(amqp.AppendProtocolHeader(nil, amqp.ProtocolAMQP)); err != nil {
		return err
	}
	if err := c.readFrame(amqp.FrameAMQP, &c.peer); err != nil {
		return err
	}
	return c.open()
}

// protocolHeader reads a protocol header.
func (c *handshake) protocolHeader() (amqp.ProtocolID, error) {
	b, err := c.f.need(amqp.FrameHeaderSize)
	if err != nil {
		return 0, err
	}
	id, err := amqp.ParseProtocolHeader(b)
	if err != nil {
		return 0, c.refuseHeader(err)
	}
	c.f.discard(amqp.FrameHeaderSize)
	return id, nil
}

func (c *handshake) refuseHeader(err error) error {
	return errors.Join(err, c.write(amqp.AppendProtocolHeader(nil, amqp.ProtocolSASL)))
}

// readFrame reads one frame and decodes it into p.
func (c *handshake) readFrame(t amqp.FrameType, p amqp.Performative) error {
	for {
		b, err := c.f.need(amqp.FrameHeaderSize)
		if err != nil {
			return err
		}
		h, err := amqp.ParseFrameHeader(b)
		if err != nil {
			return err
		}
		if h.Size > maxFrameSize || h.Type != t {
			return fmt.Errorf("unexpected frame of type %d and %d bytes", h.Type, h.Size)
		}
		if b, err = c.f.need(int(h.Size)); err != nil {
			return err
		}
		body := b[int(h.Doff)*4:]
		if len(body) > 0 {
			// p must not alias the buffer
			_, err = amqp.DecodePerformative(append([]byte(nil), body...), p)
		}
		c.f.discard(int(h.Size))
		if len(body) > 0 {
			return err
		}
	}
}

func (c *handshake) write(b []byte) error {
	_, err := c.nc.Write(b)
	return err
}

// open answers the peer's Open with the values of the service.
func (c *handshake) open() error {
	if c.peer.MaxFrameSize < amqp.MinMaxFrameSize {
		return fmt.Errorf("peer's max-frame-size of %d is below %d", c.peer.MaxFrameSize, amqp.MinMaxFrameSize)
	}
	c.peer.MaxFrameSize = min(c.peer.MaxFrameSize, maxFrameSize)
	// Half of the shorter idle-time-out, so that a delayed frame does not end the connection
	// (section 2.4.5).
	c.idle = idleTimeout / 2
	if peer := time.Duration(c.peer.IdleTimeout) * time.Millisecond; peer > 0 {
		c.idle = max(min(c.idle, peer/2), 10*time.Millisecond)
	}
	reply := amqp.Open{
		ContainerID: c.ns.containerID, Hostname: c.peer.Hostname, MaxFrameSize: maxFrameSize,
		OfferedCapabilities: offered(c.peer.DesiredCapabilities),
		ChannelMax:          channelMax, IdleTimeout: uint32(idleTimeout / time.Millisecond),
		Properties: amqp.Map{{Key: amqp.Symbol("product"), Value: "busemu"}, {Key: amqp.Symbol("platform"), Value: "Go"}},
	}
	return c.write(amqp.AppendFrame(nil, amqp.FrameAMQP, 0, &reply))
}
