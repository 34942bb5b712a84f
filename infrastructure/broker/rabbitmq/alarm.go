package rabbitmq

import (
	"errors"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// alarm is the state of a connection whose broker is short of memory or disk. The broker reads nothing from
// a connection that publishes until it has enough again:
//
//	[open] --connection.blocked--> [raised] --connection.unblocked, or the connection ends--> [open]
//
// While it is raised, no message is sent, messages in flight count as failed (they may have been stored),
// and the publisher opens and closes no channel: the broker would not reply, and the connection would be
// replaced by one that is blocked with its first message. Receivers and operators close theirs, because
// they must not wait for the end of an alarm. The zero value is open. It is safe for concurrent use.
type alarm struct {
	mu      sync.Mutex
	reason  string        // "": not raised
	raised  chan struct{} // closed while the alarm is raised
	cleared chan struct{} // open while the alarm is raised
}

// set applies a notification; a reason of "" clears the alarm.
func (a *alarm) set(reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.init()
	switch {
	case a.reason == "" && reason != "":
		close(a.raised)
		a.cleared = make(chan struct{})
	case a.reason != "" && reason == "":
		a.raised = make(chan struct{})
		close(a.cleared)
	}
	a.reason = reason
}

func (a *alarm) init() {
	if a.raised == nil {
		a.raised, a.cleared = make(chan struct{}), make(chan struct{})
		close(a.cleared)
	}
}

// err returns why the broker accepts no messages; nil if it does.
func (a *alarm) err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reason == "" {
		return nil
	}
	return errors.New("the broker accepts no messages: " + a.reason)
}

// channels returns the channels that are closed when the alarm is raised, and when it is cleared.
func (a *alarm) channels() (raised, cleared <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.init()
	return a.raised, a.cleared
}

// watch applies the notifications of a connection until it ends.
func (s *session) watch(notes <-chan amqp.Blocking) {
	defer s.alarm.set("")
	log := s.client.cfg.Logger
	for n := range notes {
		if n.Active {
			log.Warn("RabbitMQ accepts no messages", "reason", n.Reason, "next", "free memory or disk of the broker; rabbitmq-diagnostics alarms shows what is short")
			s.alarm.set(n.Reason)
		} else {
			log.Info("RabbitMQ accepts messages again")
			s.alarm.set("")
		}
	}
}
