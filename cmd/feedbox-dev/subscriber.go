package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"feedbox/infrastructure/console"
	"feedbox/infrastructure/servicebus"
	"feedbox/infrastructure/servicebus/subscriber"
)

// closeTimeout bounds the goodbye to the broker.
const closeTimeout = 5 * time.Second

// demoSubscriber is a consumer of the topic that prints what it receives.
type demoSubscriber struct {
	client *servicebus.Client
	kit    *subscriber.Subscriber
}

// printer shows events to a person.
type printer struct {
	style console.Style

	mu  sync.Mutex // guards out
	out io.Writer
}

func newDemoSubscriber(e endpoints, screen *printer, log *slog.Logger) (*demoSubscriber, error) {
	d := &demoSubscriber{}
	var err error
	d.client, err = servicebus.NewClient(servicebus.ClientConfig{ConnectionString: e.ServiceBusConnectionString})
	if err != nil {
		return nil, err
	}
	d.kit, err = subscriber.New(d.client.Client, e.Topic, e.Subscription, screen.event, &subscriber.Options{
		// Many contacts change once: leave a session soon, so that the next gets its turn.
		Sessions: 32, SessionIdle: 100 * time.Millisecond,
		Logger: log.With("part", "subscriber"),
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (d *demoSubscriber) run(ctx context.Context, started func()) error {
	started()
	err := d.kit.Run(ctx)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	_ = d.client.Close(closing) // the broker ends with this process
	return err
}

// event shows one: two lines, the second one its body as it was stored.
func (p *printer) event(_ context.Context, e *subscriber.Event) error {
	if !json.Valid(e.Body) {
		return subscriber.DeadLetter("not_json", fmt.Errorf("event %s has a body that is not JSON", e.ID))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := fmt.Fprintf(p.out, "event %s  contact %s  sequence %d  version %d\n  %s\n",
		p.style.Good(e.Action), e.Key, e.Sequence, e.AggregateVersion, p.style.Faint(string(e.Body)))
	return err
}
