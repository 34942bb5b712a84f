// Package rabbit is RabbitMQ as an operator sees it.
package rabbit

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

type broker struct {
	cfg    config.RabbitMQ
	client *rabbitmq.Client
}

// Broker is an operator's side of an exchange. It closes client.
func Broker(cfg config.RabbitMQ, client *rabbitmq.Client) operator.Broker {
	return &broker{cfg, client}
}

// Open implements operator.Broker.
func (b *broker) Open() (operator.Publisher, error) {
	return rabbitmq.NewPublisher(b.client, b.cfg.Exchange, &rabbitmq.PublisherOptions{Source: b.cfg.Source})
}

// Close implements operator.Broker.
func (b *broker) Close(context.Context) error { return b.client.Close() }

// Window implements operator.Broker: RabbitMQ drops nothing that is sent again.
func (b *broker) Window(context.Context, string) operator.Window { return operator.Window{} }

// Examine implements operator.Broker.
func (b *broker) Examine(step func(operator.Examination) bool, _ string, _ time.Duration) {
	host := ""
	if u, err := url.Parse(b.cfg.URL.Reveal()); err == nil { // the configuration has checked it
		host = u.Hostname()
	}
	name := func(ctx context.Context) []operator.Finding {
		return []operator.Finding{operator.LookUp(ctx, "rabbitmq dns", host, "FEEDBOX_RABBITMQ_URL")}
	}
	if step(name) {
		step(b.examineExchange)
	}
}

// advice is what to do about a failed use of the exchange, by the relay's word for it.
var advice = map[string]string{
	"exchange_not_found": "declare the exchange, of type direct and durable, and bind a queue to it",
	"access_refused":     "check user, password and virtual host of FEEDBOX_RABBITMQ_URL, and the user's permissions to write to the exchange",
	"refused":            "the exchange has another type: it has to be a durable direct exchange",
}

// examineExchange looks at the exchange and changes nothing.
func (b *broker) examineExchange(ctx context.Context) []operator.Finding {
	check := "exchange " + b.cfg.Exchange
	err := rabbitmq.Check(ctx, b.client, b.cfg.Exchange)
	if err == nil {
		return []operator.Finding{
			operator.Fine(check, "there"),
			operator.Fine("duplicates", "RabbitMQ drops none: each consumer needs an inbox"),
		}
	}
	f := operator.Fine(check, "%v", err)
	if e, ok := errors.AsType[*relay.Error](err); ok {
		if next := advice[e.Reason]; next != "" {
			return []operator.Finding{f.Is(operator.FindingFailed, next)}
		}
	}
	return []operator.Finding{f.Is(operator.FindingFailed, "nothing answers: check host and port of FEEDBOX_RABBITMQ_URL, and the network between")}
}
