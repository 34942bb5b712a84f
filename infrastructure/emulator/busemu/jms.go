package busemu

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

// A consumer of a topic itself, as JMS has it (OASIS, AMQP bindings for JMS; Qpid JMS):
// the link stands for a subscription, which is made if it is not there. What it is called
// and how long it lives is told by the link.
//
//	                 link name           source
//	unshared         unique              capabilities: topic
//	  durable        the subscription's  expiry-policy never, durable
//	shared           name|…              capabilities: topic, shared
//	  without client id                  capabilities: global
//
// A subscription that is not durable goes with its last consumer. A durable one stays
// until an attach of its name without a source, which asks for it, is detached.

// Capabilities of connections and sources.
const (
	capabilityTopic   amqp.Symbol = "topic"
	capabilityShared  amqp.Symbol = "shared"
	capabilityGlobal  amqp.Symbol = "global"
	capabilitySubs    amqp.Symbol = "SHARED-SUBS"
	capabilityDelayed amqp.Symbol = "DELAYED_DELIVERY"
)

// offered are the capabilities a connection is offered: those it asked for.
func offered(desired []amqp.Symbol) (some []amqp.Symbol) {
	for _, c := range []amqp.Symbol{capabilitySubs, capabilityDelayed} {
		if slices.Contains(desired, c) {
			some = append(some, c)
		}
	}
	return some
}

// maxSubscriptionName is the length of a subscription's name at the broker.
const maxSubscriptionName = 50

// jmsSubscription is the subscription that a link stands for.
type jmsSubscription struct {
	topic, name     string
	durable, shared bool
	selector        string // as an SQL filter; empty: everything
}

func (j *jmsSubscription) path() string { return j.topic + "/Subscriptions/" + j.name }

func jmsSubscriptionOf(p *amqp.Attach, topic, client string) (*jmsSubscription, error) {
	j := &jmsSubscription{
		topic:   topic,
		durable: p.Source.Durable > 0 || p.Source.ExpiryPolicy == "never",
		shared:  slices.Contains(p.Source.Capabilities, capabilityShared),
	}
	if slices.Contains(p.Source.Capabilities, capabilityGlobal) {
		client = ""
	}
	j.name = jmsName(p.Name, client, j.durable)
	if !j.durable && !j.shared {
		j.name = jmsName(newUUID().hex(), "", false)
	}
	selector, err := jmsSelector(p.Source.Filter)
	j.selector = selector
	return j, err
}

// jmsName is what the subscription is called, as the service calls it.
func jmsName(link, client string, durable bool) string {
	name, _, _ := strings.Cut(link, "|")
	kind := "ND"
	if durable {
		kind = "D"
	}
	name += "$" + client + "$" + kind
	clean := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`\?#@*<>%&/`, r) {
			return '_'
		}
		return r
	}, name)
	if clean == name && len(name) <= maxSubscriptionName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	digest := hex.EncodeToString(sum[:8])
	return clean[:min(len(clean), maxSubscriptionName-len(digest)-1-len(kind)-1)] + "$" + digest + "$" + kind
}

// jmsConsumers counts the links that stand for a subscription, and makes and deletes it.
type jmsConsumers struct {
	mu    sync.Mutex     // held while the subscription is made or deleted
	links map[string]int // by path
}

// join makes the subscription for a link of it.
func (s *Server) join(ctx context.Context, j *jmsSubscription) error {
	s.jms.mu.Lock()
	defer s.jms.mu.Unlock()
	if s.jms.links[j.path()] > 0 && !j.shared {
		return &broker.Error{Condition: broker.NotAllowed, Description: "The subscription '" + j.path() + "' has a consumer already and is not shared."}
	}
	if err := s.ensureSubscription(ctx, j); err != nil {
		return err
	}
	if s.jms.links == nil {
		s.jms.links = make(map[string]int)
	}
	s.jms.links[j.path()]++
	return nil
}

func (s *Server) ensureSubscription(ctx context.Context, j *jmsSubscription) error {
	rule := broker.Rule{Name: "$Default", Filter: sqlfilter.Filter{Kind: sqlfilter.KindTrue}}
	if j.selector != "" {
		rule.Filter = sqlfilter.Filter{Kind: sqlfilter.KindSQL, Expression: j.selector}
	}
	info, err := s.broker.Subscription(j.topic, j.name)
	if err == nil {
		same := len(info.Rules) == 1 && info.Rules[0].Filter.Expression == rule.Filter.Expression
		switch {
		case same:
			return nil
		case j.shared:
			return &broker.Error{Condition: broker.NotAllowed, Description: "The shared subscription '" + j.path() + "' has another selector."}
		}
		if err := s.broker.DeleteSubscription(ctx, j.topic, j.name); err != nil { // JMS: a new one
			return err
		}
	} else if !errors.Is(err, broker.NotFound) {
		return err
	}
	p := broker.Subscription{Name: j.name, Rules: []broker.Rule{rule}}
	if !j.durable {
		p.AutoDeleteOnIdle = 5 * time.Minute // should the emulator end before its consumer
	}
	_, err = s.broker.CreateSubscription(ctx, j.topic, p)
	return err
}

// leave is the reverse of join.
func (s *Server) leave(j *jmsSubscription) {
	s.background(func(ctx context.Context) {
		s.jms.mu.Lock()
		defer s.jms.mu.Unlock()
		s.jms.links[j.path()]--
		if s.jms.links[j.path()] > 0 {
			return
		}
		delete(s.jms.links, j.path())
		if !j.durable {
			if err := s.broker.DeleteSubscription(ctx, j.topic, j.name); err != nil {
				s.log.DebugContext(ctx, "delete a subscription that is not durable", "path", j.path(), "error", err)
			}
		}
	})
}

// openTopic opens a receiver on the subscription that the link stands for. The attach is
// answered when that is there.
func (l *outgoingLink) openTopic(o broker.ReceiverOptions) error {
	c := l.s.c
	j, err := jmsSubscriptionOf(l.attach, l.node.path, c.peer.ContainerID)
	if err != nil {
		return err
	}
	l.cancel = func() {}
	c.srv.background(func(ctx context.Context) {
		err := c.srv.join(ctx, j)
		c.post(event{fn: func() { l.joined(j, o, err) }})
	})
	return nil
}

func (l *outgoingLink) joined(j *jmsSubscription, o broker.ReceiverOptions, err error) {
	l.cancel = nil
	b := l.s.c.srv.broker
	if l.over() {
		if err == nil {
			l.s.c.srv.leave(j)
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

// unsubscription is a link that asks for a durable subscription in order to delete it.
type unsubscription struct {
	linkBase
	topic, name string
}

// attachUnsubscription answers an attach without a source: with that of the durable
// subscription of the link's name.
func (s *session) attachUnsubscription(b linkBase, p *amqp.Attach) {
	client := s.c.peer.ContainerID
	if strings.HasSuffix(p.Name, "|global") {
		client = ""
	}
	l := &unsubscription{linkBase: b, name: jmsName(p.Name, client, true)}
	for _, t := range s.c.srv.broker.Topics() {
		if _, err := s.c.srv.broker.Subscription(t.Name, l.name); err == nil {
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
func (*unsubscription) release()              {}

// handleDetach deletes the subscription if the link is closed.
func (l *unsubscription) handleDetach(p *amqp.Detach) {
	if !p.Closed {
		l.answerDetach()
		return
	}
	c := l.s.c
	c.srv.background(func(ctx context.Context) {
		err := c.srv.broker.DeleteSubscription(ctx, l.topic, l.name)
		c.post(event{fn: func() {
			if err != nil {
				l.sendDetach(wireError(err))
			}
			l.answerDetach()
		}})
	})
}
