package busemu

import (
	"fmt"
	"sync/atomic"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// com.microsoft:update-disposition settles messages by their lock tokens.
//
// Request: disposition-status (completed, abandoned, suspended for dead-letter, defered with
// one r, unlocked); lock-tokens, array of uuid; deadletter-reason, deadletter-description,
// properties-to-modify; session-id.
// Reply: empty.
//
// It settles each token separately. The reply has the first failure (410
// com.microsoft:message-lock-lost for an unknown token).
//
// Source: azservicebus internal/mgmt.go.
func mgmtUpdateDisposition(m *mgmtCall) {
	tokens, ok := m.lockTokens()
	if !ok {
		m.badRequest("lock-tokens")
		return
	}
	o, err := m.outcome()
	if err != nil {
		m.fail(err)
		return
	}
	left := atomic.Int64{}
	left.Store(int64(len(tokens)))
	var failure atomic.Pointer[error]
	for _, token := range tokens {
		m.broker().Settle(m.node.path, token, o, func(err error) {
			if err != nil {
				failure.CompareAndSwap(nil, &err)
			}
			if left.Add(-1) > 0 {
				return
			}
			if first := failure.Load(); first != nil {
				m.fail(*first)
				return
			}
			m.done(nil)
		})
	}
}

func (m *mgmtCall) outcome() (broker.Outcome, error) {
	var o broker.Outcome
	status, _ := m.body.String("disposition-status")
	switch status {
	case "completed":
		o.Kind = broker.Complete
	case "abandoned":
		o.Kind = broker.Abandon
	case "suspended":
		o.Kind = broker.DeadLetter
	case "defered", "deferred":
		o.Kind = broker.Defer
	case "unlocked", "released":
		o.Kind = broker.Release
	default:
		return o, &broker.Error{Condition: broker.ArgumentError, Description: fmt.Sprintf("The disposition-status '%s' is unknown.", status)}
	}
	o.Reason, _ = m.body.String("deadletter-reason")
	o.Description, _ = m.body.String("deadletter-description")
	v, _ := m.body.Get("properties-to-modify")
	modify, _ := v.(amqp.Map)
	o.Properties = properties(modify)
	return o, nil
}
