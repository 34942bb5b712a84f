package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/servicebus"
	"feedbox/infrastructure/servicebus/subscriber"
)

// closeTimeout bounds the goodbye to the broker.
const closeTimeout = 5 * time.Second

// demoSubscriber is a consumer of the topic that prints what it receives.
type demoSubscriber struct {
	client *azservicebus.Client
	kit    *subscriber.Subscriber

	mu  sync.Mutex // guards out
	out io.Writer
}

func newDemoSubscriber(e endpoints, out io.Writer, log *slog.Logger) (*demoSubscriber, error) {
	d := &demoSubscriber{out: out}
	var err error
	d.client, err = servicebus.NewClient(servicebus.ClientConfig{ConnectionString: e.ServiceBusConnectionString})
	if err != nil {
		return nil, err
	}
	d.kit, err = subscriber.New(d.client, e.Topic, e.Subscription, d.print, &subscriber.Options{
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

// print shows one event: two lines, the second one its body as it was stored.
func (d *demoSubscriber) print(_ context.Context, e *subscriber.Event) error {
	if !json.Valid(e.Body) {
		return subscriber.DeadLetter("not_json", fmt.Errorf("event %s has a body that is not JSON", e.ID))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err := fmt.Fprintf(d.out, "event %s  contact %s  sequence %d  version %d\n  %s\n",
		e.Action, e.Key, e.Sequence, e.AggregateVersion, e.Body)
	return err
}
