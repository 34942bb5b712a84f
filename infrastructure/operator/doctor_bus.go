package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/Azure/go-amqp"

	"feedbox/infrastructure/config"
	"feedbox/infrastructure/cosmos"
)

// examineSend opens the sending link to each topic.
func (o *Operator) examineSend(ctx context.Context) []Finding {
	var found []Finding
	for _, topic := range o.topics() {
		found = append(found, o.examineLink(ctx, topic))
	}
	return found
}

func (o *Operator) examineLink(ctx context.Context, topic string) Finding {
	check := "send to topic " + topic
	err := o.openLink(ctx, topic)
	if err == nil {
		return fine(check, "allowed")
	}
	f := fine(check, "%s", cosmos.Brief(err))
	answer, _ := errors.AsType[*amqp.Error](err)
	coded, _ := errors.AsType[*azservicebus.Error](err)
	switch {
	case answer != nil && answer.Condition == amqp.ErrCondUnauthorizedAccess, coded != nil && coded.Code == azservicebus.CodeUnauthorizedAccess:
		if o.cfg.ServiceBus.ConnectionString.IsSet() {
			return f.is(FindingFailed, "the key of FEEDBOX_SERVICEBUS_CONNECTION_STRING is wrong or may not send: copy the string of a policy with the right Send")
		}
		return f.is(FindingFailed, o.busAdvice(ctx, busSender, topic))
	case answer != nil && answer.Condition == amqp.ErrCondNotFound, coded != nil && coded.Code == azservicebus.CodeNotFound:
		return f.is(FindingFailed, "create the topic (azd provision), or set FEEDBOX_SERVICEBUS_TOPIC to one that exists")
	case answer != nil && answer.Condition == "com.microsoft:entity-disabled":
		return f.is(FindingFailed, "enable the topic: az servicebus topic update --status Active")
	case credentialFailed(err):
		return f.is(FindingFailed, "no identity could be had: az login, or run where a managed identity is, or set FEEDBOX_SERVICEBUS_CONNECTION_STRING")
	}
	return f.is(FindingFailed, "nothing answers: check the name of the namespace, that port 5671 is open, and the namespace's firewall")
}

func (o *Operator) openLink(ctx context.Context, topic string) error {
	sender, err := o.clients.Bus.NewSender(topic, nil)
	if err != nil {
		return err
	}
	defer func() { _ = sender.Close(ctx) }()  // the finding is what counts
	_, err = sender.NewMessageBatch(ctx, nil) // opens the link to learn its limit
	return err
}

// topic reads how a topic is set up, by the management API at base; nil if there is none.
func (o *Operator) topic(ctx context.Context, base, name string) (*admin.Client, *admin.GetTopicResponse, error) {
	client, err := o.adminClient(base)
	if err != nil {
		return nil, nil, err
	}
	topic, err := client.GetTopic(ctx, name, nil)
	return client, topic, err
}

// examineTopics reads how each topic is set up, if the identity may. What is found of those
// beside the usual one says whose it is.
func (o *Operator) examineTopics(ctx context.Context, base string) []Finding {
	var found []Finding
	for i, name := range o.topics() {
		for _, f := range o.examineTopic(ctx, base, name) {
			if i > 0 {
				f.Check += " of topic " + name
			}
			found = append(found, f)
		}
	}
	return found
}

func (o *Operator) examineTopic(ctx context.Context, base, name string) []Finding {
	const check = "topic settings"
	client, topic, err := o.topic(ctx, base, name)
	switch code := status(err); {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		next := "the relay does not need it; to see the settings here: " + o.busAdvice(ctx, busOwner, name)
		if o.cfg.ServiceBus.ConnectionString.IsSet() {
			next = "the relay does not need it; a connection string with the right Manage would show the settings"
		}
		return []Finding{fine(check, "no right to read them").is(FindingUnknown, next)}
	case client == nil:
		return []Finding{fine(check, "%s", cosmos.Brief(err)).is(FindingUnknown, "")}
	case err != nil:
		return []Finding{fine(check, "%s", cosmos.Brief(err)).is(FindingUnknown, "the management API does not answer at this address; of an emulator, name it: --servicebus-admin URL")}
	case topic == nil:
		return []Finding{fine(check, "the topic %s does not exist", name).is(FindingFailed, "create it: azd provision")}
	}
	return append(o.judgeTopic(topic.TopicProperties), o.examineSubscriptions(ctx, client, name)...)
}

// judgeTopic compares the topic with what the relay counts on.
func (o *Operator) judgeTopic(t admin.TopicProperties) []Finding {
	var found []Finding
	if t.Status != nil && *t.Status != admin.EntityStatusActive {
		found = append(found, fine("topic status", "%s", *t.Status).is(FindingFailed, "az servicebus topic update --status Active"))
	}
	window, needed := windowOf(t).length, o.resendSpan()
	f := fine("duplicate detection", "on, window %s; a takeover sends again within %s", window, needed)
	switch {
	case window == 0:
		f = fine("duplicate detection", "off").is(FindingFailed, "it can only be set when a topic is created: create the topic anew with duplicate detection, or make consumers drop duplicates by message id")
	case window < needed:
		f = f.is(FindingWarning, fmt.Sprintf("az servicebus topic update --duplicate-detection-history-time-window PT%dM", int(needed/time.Minute)+1))
	}
	found = append(found, f)
	if t.EnablePartitioning != nil && *t.EnablePartitioning {
		found = append(found, fine("topic partitions", "on: a batch may hold one key only"))
	}
	return found
}

// windowOf is the duplicate window of a topic.
func windowOf(t admin.TopicProperties) duplicateWindow {
	if t.RequiresDuplicateDetection == nil || !*t.RequiresDuplicateDetection {
		return duplicateWindow{}
	}
	if t.DuplicateDetectionHistoryTimeWindow != nil {
		if d, ok := parseISODuration(*t.DuplicateDetectionHistoryTimeWindow); ok {
			return duplicateWindow{length: d}
		}
	}
	return duplicateWindow{length: defaultDuplicateWindow}
}

// resendSpan is how long after the first send a takeover may send the same event
// again: a key waited ahead of it, the lease expires, another host looks for it.
func (o *Operator) resendSpan() time.Duration {
	return o.cfg.Lease.Expiry + o.cfg.Lease.Acquire + o.cfg.DrainTimeout + config.WaitLimit
}

func (o *Operator) examineSubscriptions(ctx context.Context, client *admin.Client, topic string) []Finding {
	var found []Finding
	pager := client.NewListSubscriptionsPager(topic, nil)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return append(found, fine("subscriptions", "%s", cosmos.Brief(err)).is(FindingUnknown, ""))
		}
		for _, s := range page.Subscriptions {
			check := "subscription " + s.SubscriptionName
			if s.RequiresSession == nil || !*s.RequiresSession {
				found = append(found, fine(check, "no sessions: its consumers get events of a key in any order").is(FindingWarning, "create it anew with sessions (--enable-session true) if its consumers need the order"))
			} else {
				found = append(found, fine(check, "sessions on"))
			}
		}
	}
	if len(found) == 0 {
		found = append(found, fine("subscriptions", "none: what is sent is dropped").is(FindingWarning, "create one: az servicebus topic subscription create --enable-session true"))
	}
	return found
}

func (o *Operator) adminClient(base string) (*admin.Client, error) {
	options := &admin.ClientOptions{}
	options.Retry.MaxRetries = -1
	if base != "" {
		u, err := url.Parse(base)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("%q is no URL", base)
		}
		options.PerCallPolicies = []policy.Policy{redirect{u}}
	}
	if o.cfg.ServiceBus.ConnectionString.IsSet() {
		return admin.NewClientFromConnectionString(o.cfg.ServiceBus.ConnectionString.Reveal(), options)
	}
	return admin.NewClient(o.cfg.ServiceBus.Namespace, o.clients.Identity, options)
}

// redirect sends requests to another base than the client's own.
type redirect struct{ base *url.URL }

// Do implements policy.Policy.
func (r redirect) Do(req *policy.Request) (*http.Response, error) {
	raw := req.Raw()
	raw.URL.Scheme, raw.URL.Host, raw.Host = r.base.Scheme, r.base.Host, r.base.Host
	return req.Next()
}

var isoDuration = regexp.MustCompile(`^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.\d+)?S)?)?$`)

// parseISODuration reads the durations of the management API (ISO 8601, days at most).
func parseISODuration(text string) (time.Duration, bool) {
	m := isoDuration.FindStringSubmatch(strings.ToUpper(text))
	if m == nil {
		return 0, false
	}
	var d time.Duration
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if m[i+1] == "" {
			continue
		}
		n, err := strconv.Atoi(m[i+1])
		if err != nil || n > 1_000_000 {
			return 0, false
		}
		d += time.Duration(n) * unit
	}
	return d, true
}
