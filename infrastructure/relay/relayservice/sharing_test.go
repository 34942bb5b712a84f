package relayservice_test

import (
	"log/slog"
	"strings"
	"testing"

	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/relay/relayservice"
	"feedbox/infrastructure/store/cosmos/cosmosrelay"
)

// Two processors with leases of their own, even in different containers, must not share the
// parked events.
func TestSecondProcessorWithTheSameParkedEventsIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "data", "leases", "parked")
	verify := func(processor string) error {
		store, err := cosmosrelay.NewStore(w.store, &cosmosrelay.Options{Database: "shop"})
		must(t, err)
		broker, err := servicebus.NewRelayBroker(w.bus, &servicebus.RelayBrokerOptions{Topic: "orders"})
		must(t, err)
		service, err := relayservice.New(store, broker, &relayservice.Options{Processor: processor, Logger: slog.New(slog.DiscardHandler)})
		must(t, err)
		return service.Verify(t.Context())
	}
	must(t, verify("one"))
	if err := verify("two"); err == nil || !strings.Contains(err.Error(), `belong to the processor "one", not to "two"`) {
		t.Errorf("the second processor: %v; want a refusal", err)
	}
	must(t, verify("one"))
	store, err := cosmosrelay.NewStore(w.store, &cosmosrelay.Options{Database: "shop"})
	must(t, err)
	if keys, err := store.Parked.Closed(t.Context()); err != nil || len(keys) > 0 {
		t.Errorf("the marker is listed as a parked key: %v, %v", keys, err)
	}
	if gates, err := store.Parked.Gates(t.Context()); err != nil || len(gates) > 0 {
		t.Errorf("the marker is listed as a gate: %v, %v", gates, err)
	}
}
