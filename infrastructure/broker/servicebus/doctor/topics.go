package doctor

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/azure"
)

// topic reads the settings of a topic from the management API at base. The response is nil if the topic
// does not exist.
func (d *Doctor) topic(ctx context.Context, base, name string) (*admin.Client, *admin.GetTopicResponse, error) {
	client, err := d.adminClient(base)
	if err != nil {
		return nil, nil, err
	}
	topic, err := client.GetTopic(ctx, name, nil)
	return client, topic, err
}

// defaultWindow is the duplicate detection window of a topic without an explicit one.
const defaultWindow = 10 * time.Minute

// Window implements operator.BrokerDoctor. It returns the shortest window of all topics, and assumes the
// default for a topic that cannot be read.
func (d *Doctor) Window(ctx context.Context, management string) operator.Window {
	var windows []operator.Window
	for _, name := range d.topics() {
		window := operator.Window{Length: defaultWindow, Assumed: true}
		if _, topic, err := d.topic(ctx, management, name); err == nil && topic != nil {
			window = windowOf(topic.TopicProperties)
		}
		windows = append(windows, window)
	}
	return slices.MinFunc(windows, func(a, b operator.Window) int { return cmp.Compare(a.Length, b.Length) })
}

// Consumers implements operator.BrokerDoctor: the subscriptions of all topics.
func (d *Doctor) Consumers(ctx context.Context, management string) ([]string, error) {
	client, err := d.adminClient(management)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, topic := range d.topics() {
		for pager := client.NewListSubscriptionsPager(topic, nil); pager.More(); {
			page, err := pager.NextPage(ctx)
			if err != nil {
				return nil, fmt.Errorf("topic %s: %s", topic, azure.Brief(err))
			}
			for _, s := range page.Subscriptions {
				name := s.SubscriptionName
				if topic != d.cfg.Topic {
					name = topic + "/" + name
				}
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// examineTopics checks the settings of each topic. Findings of topics other than the default one contain
// the name of the topic.
func (d *Doctor) examineTopics(ctx context.Context, base string, resend time.Duration) []operator.Finding {
	var found []operator.Finding
	for _, name := range d.topics() {
		for _, f := range d.examineTopic(ctx, base, name, resend) {
			if name != d.cfg.Topic {
				f.Check += " of topic " + name
			}
			found = append(found, f)
		}
	}
	return found
}

func (d *Doctor) examineTopic(ctx context.Context, base, name string, resend time.Duration) []operator.Finding {
	const check = settingsCheck
	client, topic, err := d.topic(ctx, base, name)
	switch code := azure.StatusOf(err); {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		next := "the relay does not need this right; to check the settings: " + d.advice(ctx, busOwner, name)
		if d.cfg.ConnectionString.IsSet() {
			next = "the relay does not need this right; to check the settings, use a connection string with the Manage right"
		}
		return []operator.Finding{operator.Fine(check, "no right to read them").Is(operator.FindingUnknown, next)}
	case client == nil:
		return []operator.Finding{operator.Fine(check, "%s", azure.Brief(err)).Is(operator.FindingUnknown, "")}
	case err != nil:
		return []operator.Finding{operator.Fine(check, "%s", azure.Brief(err)).Is(operator.FindingUnknown, "no response from the management API; set its address for an emulator: --servicebus-admin URL")}
	case topic == nil:
		return []operator.Finding{operator.Fine(check, "the topic %s does not exist", name).Is(operator.FindingFailed, "create it: azd provision")}
	}
	return append(d.judgeTopic(topic.TopicProperties, resend), d.examineSubscriptions(ctx, client, name)...)
}

// judgeTopic checks the settings that the relay relies on.
func (d *Doctor) judgeTopic(t admin.TopicProperties, resend time.Duration) []operator.Finding {
	var found []operator.Finding
	if t.Status != nil && *t.Status != admin.EntityStatusActive {
		found = append(found, operator.Fine("topic status", "%s", *t.Status).Is(operator.FindingFailed, "az servicebus topic update --status Active"))
	}
	window, needed := windowOf(t).Length, resend
	f := operator.Fine("duplicate detection", "on, window %s; a takeover may repeat events within %s", window, needed)
	switch {
	case window == 0:
		f = operator.Fine("duplicate detection", "off").Is(operator.FindingFailed, "recreate the topic with duplicate detection, which cannot be enabled later, or drop duplicates in consumers by message id")
	case window < needed:
		f = f.Is(operator.FindingWarning, fmt.Sprintf("az servicebus topic update --duplicate-detection-history-time-window PT%dM", int(needed/time.Minute)+1))
	}
	found = append(found, f)
	if t.EnablePartitioning != nil && *t.EnablePartitioning {
		found = append(found, operator.Fine("topic partitions", "on: a batch may contain one key only"))
	}
	return found
}

func windowOf(t admin.TopicProperties) operator.Window {
	if t.RequiresDuplicateDetection == nil || !*t.RequiresDuplicateDetection {
		return operator.Window{}
	}
	if t.DuplicateDetectionHistoryTimeWindow != nil {
		if d, ok := parseISODuration(*t.DuplicateDetectionHistoryTimeWindow); ok {
			return operator.Window{Length: d}
		}
	}
	return operator.Window{Length: defaultWindow}
}

func (d *Doctor) examineSubscriptions(ctx context.Context, client *admin.Client, topic string) []operator.Finding {
	var found []operator.Finding
	pager := client.NewListSubscriptionsPager(topic, nil)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return append(found, operator.Fine("subscriptions", "%s", azure.Brief(err)).Is(operator.FindingUnknown, ""))
		}
		for _, s := range page.Subscriptions {
			check := "subscription " + s.SubscriptionName
			if s.RequiresSession == nil || !*s.RequiresSession {
				found = append(found, operator.Fine(check, "no sessions: its consumers get events of a key in any order").Is(operator.FindingWarning, "recreate it with sessions (--enable-session true) if its consumers need the order"))
			} else {
				found = append(found, operator.Fine(check, "sessions on"))
			}
			if s.Status != nil && *s.Status != admin.EntityStatusActive {
				f := &found[len(found)-1]
				*f = operator.Fine(check, "%s, so its consumers receive nothing; %s", *s.Status, f.Detail).Is(operator.FindingWarning, "az servicebus topic subscription update --status Active")
			}
		}
	}
	if len(found) == 0 {
		found = append(found, operator.Fine("subscriptions", "none: all events are dropped").Is(operator.FindingWarning, "create one: az servicebus topic subscription create --enable-session true"))
	}
	return found
}

func (d *Doctor) adminClient(base string) (*admin.Client, error) {
	options := &admin.ClientOptions{}
	options.Retry.MaxRetries = -1
	if base != "" {
		redirect, err := azure.Redirect(base)
		if err != nil {
			return nil, err
		}
		options.PerCallPolicies = []policy.Policy{redirect}
	}
	if d.cfg.ConnectionString.IsSet() {
		return admin.NewClientFromConnectionString(d.cfg.ConnectionString.Reveal(), options)
	}
	return admin.NewClient(d.cfg.Namespace, d.identity, options)
}

var isoDuration = regexp.MustCompile(`^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.\d+)?S)?)?$`)

// parseISODuration parses the durations of the management API (ISO 8601, in days or smaller units).
func parseISODuration(text string) (time.Duration, bool) {
	m := isoDuration.FindStringSubmatch(strings.ToUpper(text))
	if m == nil {
		return 0, false
	}
	var sum time.Duration
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if m[i+1] == "" {
			continue
		}
		n, err := strconv.Atoi(m[i+1])
		if err != nil || n > 1_000_000 {
			return 0, false
		}
		sum += time.Duration(n) * unit
	}
	return sum, true
}

// The built-in roles of Service Bus.
const (
	busSender = "Azure Service Bus Data Sender"
	busOwner  = "Azure Service Bus Data Owner"

	busScope = "https://servicebus.azure.net/.default"
)

// advice returns the command that assigns a role on a topic.
func (d *Doctor) advice(ctx context.Context, role, topic string) string {
	namespace, _, _ := strings.Cut(d.host(), ".")
	return fmt.Sprintf("az role assignment create --role %q --assignee-object-id %s --assignee-principal-type ServicePrincipal --scope /subscriptions/<subscription>/resourceGroups/<resource-group>/providers/Microsoft.ServiceBus/namespaces/%s/topics/%s",
		role, azure.Principal(ctx, d.identity, busScope), namespace, topic)
}
