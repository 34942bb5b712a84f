// Package doctor checks an exchange of RabbitMQ for an operator.
package doctor

import (
	"context"
	"errors"
	"net/url"
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
}

// New returns the doctor of the exchange in cfg. It does no I/O.
func New(cfg config.RabbitMQ, client *rabbitmq.Client) *Doctor { return &Doctor{cfg, client} }

// Window implements operator.BrokerDoctor. It is zero, because RabbitMQ does not detect duplicates.
func (d *Doctor) Window(context.Context, string) operator.Window { return operator.Window{} }

// Consumers implements operator.BrokerDoctor. AMQP cannot list queues.
func (d *Doctor) Consumers(context.Context, string) ([]string, error) {
	return nil, errors.New("RabbitMQ does not list the groups of consumers")
}

// Examine implements operator.BrokerDoctor.
func (d *Doctor) Examine(step func(operator.Examination) bool, _ string, _ time.Duration) {
	host := ""
	if u, err := url.Parse(d.cfg.URL.Reveal()); err == nil { // validated by the configuration
		host = u.Hostname()
	}
	if step(operator.LookUp("rabbitmq dns", host, "FEEDBOX_RABBITMQ_URL")) {
		step(d.examineExchange)
	}
}

// advice contains the next step for each reason of an error.
var advice = map[string]string{
	"exchange_not_found": "declare the exchange, of type direct and durable, and bind a queue to it",
	"access_refused":     "check user, password and virtual host of FEEDBOX_RABBITMQ_URL, and the user's permissions to write to the exchange",
	"refused":            "recreate the exchange: it must be durable and of type direct",
}

func (d *Doctor) examineExchange(ctx context.Context) []operator.Finding {
	check := "exchange " + d.cfg.Exchange
	err := rabbitmq.Check(ctx, d.client, d.cfg.Exchange)
	if err == nil {
		return []operator.Finding{
			operator.Fine(check, "exists"),
			operator.Fine("duplicates", "not detected by RabbitMQ: each consumer needs an inbox"),
		}
	}
	f := operator.Fine(check, "%v", err)
	if e, ok := errors.AsType[*relay.Error](err); ok {
		if next := advice[e.Reason]; next != "" {
			return []operator.Finding{f.Is(operator.FindingFailed, next)}
		}
	}
	return []operator.Finding{f.Is(operator.FindingFailed, "no response: check the host and port of FEEDBOX_RABBITMQ_URL, and the network")}
}
