package busemu

import (
	"bytes"
	"errors"
	"fmt"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

// SASL dialogue.
//
// It supports the service's mechanisms. ANONYMOUS (the Go and JavaScript SDKs), MSSBCBS (.NET)
// and EXTERNAL grant nothing, because rights come by $cbs. PLAIN takes a key's name and value
// and grants the key's rights on all entities. Other mechanisms are refused.
//
// Source: AMQP 1.0 part 5, section 5.3.2.

var saslMechanisms = []amqp.Symbol{"MSSBCBS", "PLAIN", "ANONYMOUS", "EXTERNAL"}

var errSASL = errors.New("authentication failed")

func (c *handshake) sasl() error {
	b := amqp.AppendProtocolHeader(nil, amqp.ProtocolSASL)
	b = amqp.AppendFrame(b, amqp.FrameSASL, 0, &amqp.SASLMechanisms{Mechanisms: saslMechanisms})
	if err := c.write(b); err != nil {
		return err
	}
	var init amqp.SASLInit
	if err := c.readFrame(amqp.FrameSASL, &init); err != nil {
		return fmt.Errorf("sasl-init: %w", err)
	}
	outcome := amqp.SASLOutcome{Code: amqp.SASLOK, AdditionalData: []byte("Welcome!")}
	switch init.Mechanism {
	case "ANONYMOUS", "MSSBCBS", "EXTERNAL":
	case "PLAIN":
		if !c.checkPlain(init.InitialResponse) {
			outcome = amqp.SASLOutcome{Code: amqp.SASLAuth, AdditionalData: []byte("The key name or the key is wrong.")}
		}
	default:
		outcome = amqp.SASLOutcome{Code: amqp.SASLAuth, AdditionalData: []byte("The mechanism is not supported.")}
	}
	if err := c.write(amqp.AppendFrame(nil, amqp.FrameSASL, 0, &outcome)); err != nil {
		return err
	}
	if outcome.Code != amqp.SASLOK {
		return errSASL
	}
	return nil
}

// checkPlain checks an RFC 4616 response: authorisation id, NUL, key name, NUL, key.
func (c *handshake) checkPlain(response []byte) bool {
	parts := bytes.Split(response, []byte{0})
	if len(parts) != 3 {
		return false
	}
	key, ok := c.ns.keys.check(string(parts[1]), parts[2])
	if ok {
		c.grants.all = key.Rights
	}
	return ok
}
