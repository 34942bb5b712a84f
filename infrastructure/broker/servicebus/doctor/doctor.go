// Package doctor checks the topics of Service Bus for an operator.
package doctor

import (
	"cmp"
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
	const dns = "service bus dns"
	if !step(operator.LookUp(dns, d.host(), "FEEDBOX_SERVICEBUS_NAMESPACE or FEEDBOX_SERVICEBUS_CONNECTION_STRING")) {
		for _, topic := range d.topics() {
			step(operator.Unexamined(dns, sendCheck(topic)))
		}
		step(operator.Unexamined(dns, settingsCheck))
		return
	}
	step(d.examineSend)
	step(func(ctx context.Context) []operator.Finding { return d.examineTopics(ctx, management, resend) })
}

// settingsCheck is the check of the settings of topics.
const settingsCheck = "topic settings"

// sendCheck returns the check of the link to a topic.
func sendCheck(topic string) string { return "send to topic " + topic }

// topics returns all topics of events, the default one or the shards first.
func (d *Doctor) topics() []string {
	first := d.cfg.Shards
	if d.cfg.Topic != "" {
		first = []string{d.cfg.Topic}
	}
	all := slices.Sorted(maps.Values(d.cfg.TopicsBySubject()))
	all = slices.DeleteFunc(slices.Compact(all), func(topic string) bool { return slices.Contains(first, topic) })
	return slices.Concat(first, all)
}

// Namespaces is the doctor of several namespaces by their names. The name of the default one is "".
type Namespaces map[string]*Doctor

// Add adds the doctor of a namespace, unless it has no topics of events.
func (n Namespaces) Add(name string, d *Doctor) {
	if len(d.topics()) > 0 {
		n[name] = d
	}
}

// Examine implements operator.BrokerDoctor.
func (n Namespaces) Examine(step func(operator.Examination) bool, management string, resend time.Duration) {
	for _, name := range slices.Sorted(maps.Keys(n)) {
		n[name].Examine(step, n.management(name, management), resend)
	}
}

// Window implements operator.BrokerDoctor.
func (n Namespaces) Window(ctx context.Context, management string) operator.Window {
	var windows []operator.Window
	for name, d := range n {
		windows = append(windows, d.Window(ctx, n.management(name, management)))
	}
	return slices.MinFunc(windows, func(a, b operator.Window) int { return cmp.Compare(a.Length, b.Length) })
}

// Consumers implements operator.BrokerDoctor. Those of a namespace with a name are TOPIC@NAMESPACE/NAME.
func (n Namespaces) Consumers(ctx context.Context, management string) ([]string, error) {
	var all []string
	for _, namespace := range slices.Sorted(maps.Keys(n)) {
		consumers, err := n[namespace].Consumers(ctx, n.management(namespace, management))
		if err != nil {
			return nil, err
		}
		for _, consumer := range consumers {
			if topic, name, _ := strings.Cut(consumer, "/"); namespace != "" {
				consumer = topic + "@" + namespace + "/" + name
			}
			all = append(all, consumer)
		}
	}
	return all, nil
}

// management returns the address of the management API, which is configurable for the default namespace
// only.
func (Namespaces) management(namespace, configured string) string {
	if namespace != "" {
		return ""
	}
	return configured
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
	check := sendCheck(topic)
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
