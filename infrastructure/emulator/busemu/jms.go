package busemu

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// JMS consumers of a topic: the attach of a receiver to a topic creates a subscription, if
// necessary. The link determines its name and lifetime:
//
//	                 link name           source
//	unshared         unique              capabilities: topic
//	  durable        the subscription's  expiry-policy never, durable
//	shared           name|…              capabilities: topic, shared
//	  without client id                  capabilities: global
//
// A subscription that is not durable is deleted with its last consumer. A durable one remains
// until an attach of its name without a source is detached with closed set; that is how a
// client unsubscribes.
//
// It refuses a second consumer of a subscription that is not shared, and a shared subscription
// with another selector.
//
// Source: OASIS, AMQP bindings for JMS; Qpid JMS.

// offered returns the capabilities to offer to a connection, out of those it desires.
func offered(desired []amqp.Symbol) (some []amqp.Symbol) {
	for _, c := range []amqp.Symbol{capabilitySubs, capabilityDelayed} {
		if slices.Contains(desired, c) {
			some = append(some, c)
		}
	}
	return some
}

// openTopic opens a receiver on the link's subscription. The attach is answered when the
// subscription exists.
func (l *outgoingLink) openTopic(o broker.ReceiverOptions) error {
	c := l.s.c
	j, err := jmsSubscriptionOf(l.attach, l.node.path, c.peer.ContainerID)
	if err != nil {
		return err
	}
	l.cancel = func() {}
	c.ns.background(func(ctx context.Context) {
		err := c.ns.join(ctx, j)
		c.post(event{fn: func() { l.joined(j, o, err) }})
	})
	return nil
}

func (l *outgoingLink) joined(j *jmsSubscription, o broker.ReceiverOptions, err error) {
	l.cancel = nil
	b := l.s.c.ns.broker
	if l.over() {
		if err == nil {
			l.s.c.ns.leave(j)
		}
		return
	}
	if err == nil {
		l.subscription = j
		l.node.path = j.path()
		l.info, err = b.Lookup(l.node.path)
	}
	if err == nil {
		l.source, err = b.OpenReceiver(l.node.path, o)
	}
	if err != nil {
		l.refuse(l.attach, err)
		l.release()
		return
	}
	l.answerAttach()
	if l.drain {
		l.continueDrain()
	}
}

// unsubscription is a link that finds a durable subscription in order to delete it.
type unsubscription struct {
	linkBase
	topic, name string
}

// attachUnsubscription answers an attach without a source with the source of the durable
// subscription of that name.
func (s *session) attachUnsubscription(b linkBase, p *amqp.Attach) {
	client := s.c.peer.ContainerID
	if strings.HasSuffix(p.Name, "|global") {
		client = ""
	}
	l := &unsubscription{linkBase: b, name: jmsName(p.Name, client, true)}
	for _, t := range s.c.ns.broker.Topics() {
		if _, err := s.c.ns.broker.Subscription(t.Name, l.name); err == nil {
			l.topic = t.Name
		}
	}
	switch {
	case l.topic == "":
		b.refuse(p, &broker.Error{Condition: broker.NotFound, Description: "There is no durable subscription '" + l.name + "'. An attach of a receiver needs a source."})
		return
	case !s.c.may(RightListen, l.topic):
		b.refuse(p, errUnauthorized("Listen", l.topic))
		return
	}
	s.links[b.handle] = l
	l.attach = nil
	s.send(&amqp.Attach{
		Name: p.Name, Handle: p.Handle, Role: amqp.RoleSender, InitialDeliveryCount: amqp.Some(uint32(0)),
		Source: &amqp.Source{Address: amqp.Some(l.topic), Durable: 2, ExpiryPolicy: "never", Capabilities: []amqp.Symbol{capabilityTopic}},
		Target: cmp.Or(p.Target, &amqp.Target{}),
	})
}

func (*unsubscription) handleFlow(*amqp.Flow) {}

func (*unsubscription) release() {}

// handleDetach deletes the subscription if the link is closed.
func (l *unsubscription) handleDetach(p *amqp.Detach) {
	if !p.Closed {
		l.answerDetach()
		return
	}
	c := l.s.c
	c.ns.background(func(ctx context.Context) {
		err := c.ns.broker.DeleteSubscription(ctx, l.topic, l.name)
		c.post(event{fn: func() {
			if err != nil {
				l.sendDetach(wireError(err))
			}
			l.answerDetach()
		}})
	})
}
