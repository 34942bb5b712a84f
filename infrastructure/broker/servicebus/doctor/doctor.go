// Package doctor checks the topics of Service Bus for an operator.
package doctor

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
	"feedbox/infrastructure/process/azure"
	"feedbox/infrastructure/process/config"
)

// Doctor checks topics. It publishes nothing and is safe for concurrent use.
type Doctor struct {
	cfg      config.ServiceBus
	client   *servicebus.Client
	identity azcore.TokenCredential
}

// New returns the doctor of the topics in cfg. identity is the credential of this process, or nil if it
// only uses keys. It does no I/O.
func New(cfg config.ServiceBus, client *servicebus.Client, identity azcore.TokenCredential) *Doctor {
	return &Doctor{cfg, client, identity}
}

// Examine implements operator.BrokerDoctor.
func (d *Doctor) Examine(step func(operator.Examination) bool, management string, resend time.Duration) {
	if step(operator.LookUp("service bus dns", d.host(), "FEEDBOX_SERVICEBUS_NAMESPACE or FEEDBOX_SERVICEBUS_CONNECTION_STRING")) {
		step(d.examineSend)
		step(func(ctx context.Context) []operator.Finding { return d.examineTopics(ctx, management, resend) })
	}
}

// topics returns all topics of events, the default one first.
func (d *Doctor) topics() []string {
	all := slices.Sorted(maps.Values(d.cfg.TopicsBySubject()))
	all = slices.DeleteFunc(slices.Compact(all), func(topic string) bool { return topic == d.cfg.Topic })
	return append([]string{d.cfg.Topic}, all...)
}

// authority returns the host name of the namespace, with the port if it has one.
func (d *Doctor) authority() string {
	if d.cfg.Namespace != "" {
		return d.cfg.Namespace
	}
	for part := range strings.SplitSeq(d.cfg.ConnectionString.Reveal(), ";") {
		if name, value, ok := strings.Cut(strings.TrimSpace(part), "="); ok && strings.EqualFold(name, "Endpoint") {
			return strings.Trim(strings.TrimPrefix(value, "sb://"), "/")
		}
	}
	return ""
}

func (d *Doctor) host() string {
	host, _, err := net.SplitHostPort(d.authority())
	if err != nil {
		return d.authority() // no port
	}
	return host
}

// examineSend opens a sender link to each topic.
func (d *Doctor) examineSend(ctx context.Context) []operator.Finding {
	var found []operator.Finding
	for _, topic := range d.topics() {
		found = append(found, d.examineLink(ctx, topic))
	}
	return found
}

func (d *Doctor) examineLink(ctx context.Context, topic string) operator.Finding {
	check := "send to topic " + topic
	err := d.openLink(ctx, topic)
	if err == nil {
		return operator.Fine(check, "allowed")
	}
	f := operator.Fine(check, "%s", azure.Brief(err))
	switch relay.ReasonOf(err) {
	case "unauthorized":
		if d.cfg.ConnectionString.IsSet() {
			return f.Is(operator.FindingFailed, "the key of FEEDBOX_SERVICEBUS_CONNECTION_STRING is wrong or has no Send right: copy the connection string of a policy with the Send right")
		}
		return f.Is(operator.FindingFailed, d.advice(ctx, busSender, topic))
	case "entity_not_found":
		return f.Is(operator.FindingFailed, "create the topic (azd provision), or set FEEDBOX_SERVICEBUS_TOPIC to one that exists")
	case "entity_disabled":
		return f.Is(operator.FindingFailed, "enable the topic: az servicebus topic update --status Active")
	case "credential":
		return f.Is(operator.FindingFailed, "no identity available: run az login, use a managed identity, or set FEEDBOX_SERVICEBUS_CONNECTION_STRING")
	}
	return f.Is(operator.FindingFailed, "no response: check the name of the namespace, that port 5671 is open, and the firewall of the namespace")
}

func (d *Doctor) openLink(ctx context.Context, topic string) error {
	publisher, err := servicebus.NewPublisher(d.client, topic, nil)
	if err != nil {
		return err
	}
	defer func() { _ = publisher.Close(ctx) }() // only the finding matters
	return publisher.Open(ctx)
}
