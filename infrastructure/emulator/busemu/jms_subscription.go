package busemu

import (
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

// Capabilities of connections and sources.
const (
	capabilityTopic   amqp.Symbol = "topic"
	capabilityShared  amqp.Symbol = "shared"
	capabilityGlobal  amqp.Symbol = "global"
	capabilitySubs    amqp.Symbol = "SHARED-SUBS"
	capabilityDelayed amqp.Symbol = "DELAYED_DELIVERY"
)

// maxSubscriptionName is the broker's limit for a subscription's name.
const maxSubscriptionName = 50

// jmsSubscription describes the subscription of a link.
type jmsSubscription struct {
	topic, name     string
	durable, shared bool
	selector        string // as an SQL filter; empty: all messages
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

// jmsName returns the name that the service gives a subscription.
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

// jmsConsumers counts the links of each subscription.
type jmsConsumers struct {
	mu    sync.Mutex     // held while a subscription is created or deleted
	links map[string]int // by path
}

// join adds a link to its subscription, which it creates if necessary.
func (n *namespace) join(ctx context.Context, j *jmsSubscription) error {
	n.jms.mu.Lock()
	defer n.jms.mu.Unlock()
	if n.jms.links[j.path()] > 0 && !j.shared {
		return &broker.Error{Condition: broker.NotAllowed, Description: "The subscription '" + j.path() + "' has a consumer already and is not shared."}
	}
	if err := n.ensureSubscription(ctx, j); err != nil {
		return err
	}
	if n.jms.links == nil {
		n.jms.links = make(map[string]int)
	}
	n.jms.links[j.path()]++
	return nil
}

func (n *namespace) ensureSubscription(ctx context.Context, j *jmsSubscription) error {
	rule := broker.Rule{Name: "$Default", Filter: sqlfilter.Filter{Kind: sqlfilter.KindTrue}}
	if j.selector != "" {
		rule.Filter = sqlfilter.Filter{Kind: sqlfilter.KindSQL, Expression: j.selector}
	}
	info, err := n.broker.Subscription(j.topic, j.name)
	if err == nil {
		same := len(info.Rules) == 1 && info.Rules[0].Filter.Expression == rule.Filter.Expression
		switch {
		case same:
			return nil
		case j.shared:
			return &broker.Error{Condition: broker.NotAllowed, Description: "The shared subscription '" + j.path() + "' has another selector."}
		}
		if err := n.broker.DeleteSubscription(ctx, j.topic, j.name); err != nil { // JMS: another selector means a new subscription
			return err
		}
	} else if !errors.Is(err, broker.NotFound) {
		return err
	}
	p := broker.Subscription{Name: j.name, Rules: []broker.Rule{rule}}
	if !j.durable {
		p.AutoDeleteOnIdle = 5 * time.Minute // in case the emulator ends before its consumer
	}
	_, err = n.broker.CreateSubscription(ctx, j.topic, p)
	return err
}

// leave removes a link. The last one deletes a subscription that is not durable.
func (n *namespace) leave(j *jmsSubscription) {
	n.background(func(ctx context.Context) {
		n.jms.mu.Lock()
		defer n.jms.mu.Unlock()
		n.jms.links[j.path()]--
		if n.jms.links[j.path()] > 0 {
			return
		}
		delete(n.jms.links, j.path())
		if !j.durable {
			if err := n.broker.DeleteSubscription(ctx, j.topic, j.name); err != nil {
				n.log.DebugContext(ctx, "non-durable subscription not deleted", "path", j.path(), "error", err)
			}
		}
	})
}
