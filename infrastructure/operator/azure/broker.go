package azure

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/store/cosmos"
)

// BrokerClients are what an operator's broker works with, ready to use.
type BrokerClients struct {
	// Bus is closed with the broker.
	Bus *servicebus.Client
	// Identity is the credential of this process; nil where only keys are used.
	Identity azcore.TokenCredential
}

// Broker is an operator's side of the topics of Service Bus.
func Broker(cfg config.ServiceBus, clients BrokerClients) operator.Broker {
	return &broker{cfg: cfg, client: clients.Bus, identity: clients.Identity}
}

type broker struct {
	cfg      config.ServiceBus
	client   *servicebus.Client
	identity azcore.TokenCredential
}

// Open implements operator.Broker.
func (b *broker) Open() (operator.Publisher, error) {
	return servicebus.NewTopics(b.client, b.cfg.Topic, b.cfg.TopicsBySubject(), &servicebus.PublisherOptions{Source: b.cfg.Source})
}

// Close implements operator.Broker.
func (b *broker) Close(ctx context.Context) error { return b.client.Close(ctx) }

// Examine implements operator.Broker.
func (b *broker) Examine(step func(operator.Examination) bool, management string, resend time.Duration) {
	name := func(ctx context.Context) []operator.Finding {
		return []operator.Finding{operator.LookUp(ctx, "service bus dns", b.host(), "FEEDBOX_SERVICEBUS_NAMESPACE or FEEDBOX_SERVICEBUS_CONNECTION_STRING")}
	}
	if step(name) {
		step(b.examineSend)
		step(func(ctx context.Context) []operator.Finding { return b.examineTopics(ctx, management, resend) })
	}
}

// topics are those that events go to, the usual one first.
func (b *broker) topics() []string {
	all := slices.Sorted(maps.Values(b.cfg.TopicsBySubject()))
	all = slices.DeleteFunc(slices.Compact(all), func(topic string) bool { return topic == b.cfg.Topic })
	return append([]string{b.cfg.Topic}, all...)
}

// authority is the namespace with its port, if it has one.
func (b *broker) authority() string {
	if b.cfg.Namespace != "" {
		return b.cfg.Namespace
	}
	for part := range strings.SplitSeq(b.cfg.ConnectionString.Reveal(), ";") {
		if name, value, ok := strings.Cut(strings.TrimSpace(part), "="); ok && strings.EqualFold(name, "Endpoint") {
			return strings.Trim(strings.TrimPrefix(value, "sb://"), "/")
		}
	}
	return ""
}

func (b *broker) host() string {
	host, _, err := net.SplitHostPort(b.authority())
	if err != nil {
		return b.authority() // no port
	}
	return host
}

// examineSend opens the sending link to each topic.
func (b *broker) examineSend(ctx context.Context) []operator.Finding {
	var found []operator.Finding
	for _, topic := range b.topics() {
		found = append(found, b.examineLink(ctx, topic))
	}
	return found
}

func (b *broker) examineLink(ctx context.Context, topic string) operator.Finding {
	check := "send to topic " + topic
	err := b.openLink(ctx, topic)
	if err == nil {
		return operator.Fine(check, "allowed")
	}
	f := operator.Fine(check, "%s", cosmos.Brief(err))
	switch relay.ReasonOf(err) {
	case "unauthorized":
		if b.cfg.ConnectionString.IsSet() {
			return f.Is(operator.FindingFailed, "the key of FEEDBOX_SERVICEBUS_CONNECTION_STRING is wrong or may not send: copy the string of a policy with the right Send")
		}
		return f.Is(operator.FindingFailed, b.advice(ctx, busSender, topic))
	case "entity_not_found":
		return f.Is(operator.FindingFailed, "create the topic (azd provision), or set FEEDBOX_SERVICEBUS_TOPIC to one that exists")
	case "entity_disabled":
		return f.Is(operator.FindingFailed, "enable the topic: az servicebus topic update --status Active")
	case "credential":
		return f.Is(operator.FindingFailed, "no identity could be had: az login, or run where a managed identity is, or set FEEDBOX_SERVICEBUS_CONNECTION_STRING")
	}
	return f.Is(operator.FindingFailed, "nothing answers: check the name of the namespace, that port 5671 is open, and the namespace's firewall")
}

func (b *broker) openLink(ctx context.Context, topic string) error {
	publisher, err := servicebus.NewPublisher(b.client, topic, nil)
	if err != nil {
		return err
	}
	defer func() { _ = publisher.Close(ctx) }() // the finding is what counts
	return publisher.Open(ctx)
}
