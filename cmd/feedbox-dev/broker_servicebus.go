package main

import (
	"context"
	"log/slog"
	"net/url"

	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/telemetry"
)

// emulatedBus is the Service Bus emulator.
type emulatedBus struct{}

func emulatedBroker(u *url.URL) broker {
	if u.String() != "" {
		return nil
	}
	return emulatedBus{}
}

// variables returns no address, because the emulator runs with any broker and its variables
// are in endpoints.variables.
func (emulatedBus) variables(*endpoints) []string {
	return []string{"FEEDBOX_BROKER", config.BrokerServiceBus}
}

func (emulatedBus) rows(e *endpoints) []string {
	return []string{"Service Bus emulator", brokerOf(e.ServiceBusConnectionString), "Service Bus admin", e.ServiceBusAdmin}
}

func (emulatedBus) copies() error { return nil }

func (emulatedBus) subscriber(_ context.Context, e *endpoints, _ bool, screen *printer, log *slog.Logger, t *telemetry.Telemetry) (*demoSubscriber, error) {
	namespace := servicebus.ClientConfig{ConnectionString: e.ServiceBusConnectionString}
	p, err := subscriber.NewSessionProcessor(namespace, subscriber.Subscription(e.Topic, e.Subscription), screen.event, &subscriber.SessionOptions{
		Sessions: 32, Logger: log.With("part", "subscriber"), Meters: t.Meters, Tracers: t.Exported(),
	})
	return &demoSubscriber{p, func() error { return nil }}, err
}
