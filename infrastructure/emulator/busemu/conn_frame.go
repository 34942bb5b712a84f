package busemu

import (
	"fmt"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

// handleFrame dispatches one frame body (AMQP 1.0 part 2, section 2.7).
func (c *conn) handleFrame(h amqp.FrameHeader, body []byte) {
	if h.Type != amqp.FrameAMQP {
		c.fail(condFramingError, "SASL frame after the SASL dialogue")
		return
	}
	code, err := amqp.PerformativeCode(body)
	if err != nil {
		c.fail(condDecodeError, err.Error())
		return
	}
	if c.closeSent && code != amqp.CodeClose {
		return // the peer has not seen our Close yet
	}
	switch code {
	case amqp.CodeBegin:
		c.handleBegin(h.Channel, body)
		return
	case amqp.CodeClose:
		var p amqp.Close
		if _, err := amqp.DecodePerformative(body, &p); err != nil {
			c.fail(condDecodeError, err.Error())
			return
		}
		if !c.closeSent {
			c.close(nil)
		}
		c.done = true
		return
	case amqp.CodeOpen:
		c.fail(condNotAllowed, "second Open on one connection")
		return
	}
	s := c.sessions[h.Channel]
	if s == nil && code == amqp.CodeEnd {
		// go-amqp ends a session whose Begin it gave up on before writing it.
		c.log.Debug("End ignored: channel has no session", "channel", h.Channel)
		return
	}
	if s == nil {
		c.fail(condFramingError, fmt.Sprintf("frame 0x%02x on channel %d, which has no session", code, h.Channel))
		return
	}
	if err := s.handle(code, body); err != nil {
		c.fail(condDecodeError, err.Error())
	}
}

func (c *conn) handleBegin(channel uint16, body []byte) {
	var p amqp.Begin
	if _, err := amqp.DecodePerformative(body, &p); err != nil {
		c.fail(condDecodeError, err.Error())
		return
	}
	switch {
	case channel > channelMax:
		c.fail(condFramingError, fmt.Sprintf("channel %d exceeds the channel-max of %d", channel, channelMax))
	case c.sessions[channel] != nil:
		c.fail(condNotAllowed, fmt.Sprintf("channel %d has a session already", channel))
	default:
		s := newSession(c, channel, &p)
		c.sessions[channel] = s
		c.send(channel, &amqp.Begin{
			RemoteChannel: amqp.Some(channel), NextOutgoingID: s.nextOutgoingID,
			IncomingWindow: incomingWindow, OutgoingWindow: outgoingWindow, HandleMax: handleMax,
		})
	}
}
