// Package doctor checks an exchange of RabbitMQ for an operator.
package doctor

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/rabbitmq"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
)

// Doctor checks an exchange. It publishes nothing and is safe for concurrent use.
type Doctor struct {
	cfg    config.RabbitMQ
	client *rabbitmq.Client
	groups []string
}

// New returns the doctor of the exchange in cfg. It does no I/O.
// groups are the consumers' groups, as in FEEDBOX_CONSUMERS.
func New(cfg config.RabbitMQ, client *rabbitmq.Client, groups ...string) *Doctor {
	return &Doctor{cfg, client, groups}
}

// Window implements operator.BrokerDoctor. It is zero, because RabbitMQ does not detect duplicates.
func (d *Doctor) Window(context.Context, string) operator.Window { return operator.Window{} }

// Consumers implements operator.BrokerDoctor. AMQP cannot list queues.
func (d *Doctor) Consumers(context.Context, string) ([]string, error) {
	return nil, errors.New("RabbitMQ does not list the groups of consumers")
}

// Examine implements operator.BrokerDoctor.
func (d *Doctor) Examine(step func(operator.Examination) bool, _ string, _ time.Duration) {
	for _, member := range d.cfg.Members() {
		host := ""
		if u, err := url.Parse(member); err == nil { // validated by the configuration
			host = u.Hostname()
		}
		const dns = "rabbitmq dns"
		if !step(operator.LookUp(dns, host, "FEEDBOX_RABBITMQ_URL")) {
			step(operator.Unexamined(dns, d.exchangeCheck()))
			d.skipGroups(step, dns)
			return
		}
	}
	switch {
	case !step(d.examineExchange):
		d.skipGroups(step, d.exchangeCheck())
	case len(d.groups) > 0:
		step(d.examineGroups)
	}
}

func (d *Doctor) exchangeCheck() string { return "exchange " + d.cfg.Exchange }

// skipGroups reports all groups as unknown, because another check failed.
func (d *Doctor) skipGroups(step func(operator.Examination) bool, failed string) {
	for _, name := range d.groups {
		step(operator.Unexamined(failed, "group "+name))
	}
}

// examineGroups looks for the queues of the groups: events for a queue that was deleted count as sent,
// because other groups receive them. Without the dead-letter queue no event is lost, but keys wait.
func (d *Doctor) examineGroups(ctx context.Context) (found []operator.Finding) {
	for _, name := range d.groups {
		check := "group " + name
		g, err := rabbitmq.ParseGroup(name)
		if err != nil {
			found = append(found, operator.Fine(check, "%v", err).Is(operator.FindingFailed, "correct FEEDBOX_CONSUMERS"))
			continue
		}
		queues, err := rabbitmq.Inspect(ctx, d.client, g)
		if errors.Is(err, rabbitmq.ErrMoreQueues) {
			found = append(found, operator.Fine(check, "%v", err).Is(operator.FindingFailed, "correct FEEDBOX_CONSUMERS, in which it is NAME:QUEUES, and compare it with the group of its consumers"))
			continue
		}
		if err != nil {
			found = append(found, operator.Fine(check, "%v", err).Is(operator.FindingUnknown, ""))
			continue
		}
		letters, queues := queues[len(queues)-1], queues[:len(queues)-1]
		var missing []string
		waiting, consumed := 0, 0
		for _, q := range queues {
			if !q.Exists {
				missing = append(missing, q.Name)
			}
			if waiting += q.Messages; q.Consumers > 0 {
				consumed++
			}
		}
		f := operator.Fine(check, "%d queues, %d of them with a consumer, %d messages wait, %d dead letters", len(queues), consumed, waiting, letters.Messages)
		switch {
		case len(missing) > 0: // Declare also creates a missing dead-letter queue
			f = operator.Fine(check, "without the queues %s: their events are lost to this group", strings.Join(missing, ", ")).
				Is(operator.FindingFailed, "call rabbitmq.Declare for the group, then send the events of that time again: feedbox replay --from TIME")
		case !letters.Exists:
			f = operator.Fine(check, "without the queue %s: an event that should be dead-lettered is retried, and later events of its key wait", letters.Name).
				Is(operator.FindingFailed, "call rabbitmq.Declare for the group")
		}
		found = append(found, f)
	}
	return found
}

// advice contains the next step for each reason of an error.
var advice = map[string]string{
	"exchange_not_found": "declare the exchange, of type direct and durable, and bind a queue to it",
	"access_refused":     "check user, password and virtual host of FEEDBOX_RABBITMQ_URL, and the user's permissions to write to the exchange",
	"refused":            "recreate the exchange: it must be durable and of type direct",
}

func (d *Doctor) examineExchange(ctx context.Context) []operator.Finding {
	check := d.exchangeCheck()
	err := rabbitmq.Check(ctx, d.client, d.cfg.Exchange)
	if err == nil {
		found := []operator.Finding{
			operator.Fine(check, "exists"),
			operator.Fine("duplicates", "not detected by RabbitMQ: each consumer needs an inbox"),
		}
		if d.cfg.PackKeys {
			found = append(found, operator.Fine("packed messages", "FEEDBOX_RABBITMQ_PACK_KEYS is set: each consumer must read them, and queues that choose by action do not receive them"))
		}
		return found
	}
	f := operator.Fine(check, "%v", err)
	if e, ok := errors.AsType[*relay.Error](err); ok {
		if next := advice[e.Reason]; next != "" {
			return []operator.Finding{f.Is(operator.FindingFailed, next)}
		}
	}
	return []operator.Finding{f.Is(operator.FindingFailed, "no response: check the host and port of FEEDBOX_RABBITMQ_URL, and the network")}
}
