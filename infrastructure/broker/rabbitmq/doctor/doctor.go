// Package doctor examines an exchange of RabbitMQ for an operator.
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

// Doctor examines an exchange. It sends nothing, and is safe for concurrent use.
type Doctor struct {
	cfg    config.RabbitMQ
	client *rabbitmq.Client
}

var _ operator.BrokerDoctor = (*Doctor)(nil)

// New returns the doctor of the exchange that cfg names. It does no I/O.
func New(cfg config.RabbitMQ, client *rabbitmq.Client) *Doctor { return &Doctor{cfg, client} }

// Window implements operator.BrokerDoctor: RabbitMQ drops nothing that is sent again.
func (d *Doctor) Window(context.Context, string) operator.Window { return operator.Window{} }

// Examine implements operator.BrokerDoctor.
func (d *Doctor) Examine(step func(operator.Examination) bool, _ string, _ time.Duration) {
	host := ""
	if u, err := url.Parse(d.cfg.URL.Reveal()); err == nil { // the configuration has checked it
		host = u.Hostname()
	}
	name := func(ctx context.Context) []operator.Finding {
		return []operator.Finding{operator.LookUp(ctx, "rabbitmq dns", host, "FEEDBOX_RABBITMQ_URL")}
	}
	if step(name) {
		step(d.examineExchange)
	}
}

// advice is what to do about a failed use of the exchange, by the relay's word for it.
var advice = map[string]string{
	"exchange_not_found": "declare the exchange, of type direct and durable, and bind a queue to it",
	"access_refused":     "check user, password and virtual host of FEEDBOX_RABBITMQ_URL, and the user's permissions to write to the exchange",
	"refused":            "the exchange has another type: it has to be a durable direct exchange",
}

// examineExchange looks at the exchange and changes nothing.
func (d *Doctor) examineExchange(ctx context.Context) []operator.Finding {
	check := "exchange " + d.cfg.Exchange
	err := rabbitmq.Check(ctx, d.client, d.cfg.Exchange)
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
