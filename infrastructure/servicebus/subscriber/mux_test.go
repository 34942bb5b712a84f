package subscriber_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"feedbox/infrastructure/servicebus/subscriber"
)

type orderPlaced struct{ Total int }

func (orderPlaced) Action() string { return "OrderPlacedEvent" }

func ExampleMux() {
	m := subscriber.NewMux()
	subscriber.OnPayload(m, func(_ context.Context, e *subscriber.Event, placed orderPlaced) error {
		fmt.Println(e.Key, "placed for", placed.Total)
		return nil
	})
	handle, err := m.Handler() // for NewSessionProcessor
	if err != nil {
		panic(err)
	}
	_ = handle(context.Background(), &subscriber.Event{Key: "order-7", Action: "OrderPlacedEvent", Body: []byte(`{"total":5}`)})
	// Output: order-7 placed for 5
}

func TestMux(t *testing.T) {
	t.Parallel()
	m := subscriber.NewMux()
	refused := errors.New("refused")
	subscriber.OnPayload(m, func(_ context.Context, _ *subscriber.Event, placed orderPlaced) error {
		if placed.Total != 5 {
			t.Errorf("placed for %d", placed.Total)
		}
		return nil
	})
	subscriber.On(m, "Refused", func(context.Context, *subscriber.Event, map[string]any) error { return refused })
	handle, err := m.Handler()
	if err != nil {
		t.Fatal(err)
	}
	event := func(action, body string) error {
		return handle(t.Context(), &subscriber.Event{Action: action, Body: []byte(body)})
	}
	if err := event("OrderPlacedEvent", `{"total":5}`); err != nil {
		t.Error(err)
	}
	if err := event("Refused", `{}`); !errors.Is(err, refused) {
		t.Errorf("the handler's error is lost: %v", err)
	}
	dead, ok := errors.AsType[*subscriber.DeadLetterError](event("OrderPlacedEvent", `{"total":"five"}`))
	if !ok || dead.Reason != subscriber.ReasonUndecodable {
		t.Errorf("a body that cannot be decoded: %v", dead)
	}
	if err := event("Unknown", `?`); err != nil {
		t.Errorf("an action nobody asked for: %v", err)
	}
	m.Otherwise(func(_ context.Context, e *subscriber.Event) error { return errors.New("nobody handles " + e.Action) })
	if err := event("Unknown", `?`); err == nil {
		t.Error("Otherwise was not asked")
	}
}

func TestAMuxThatIsFilledWronglyIsAnError(t *testing.T) {
	t.Parallel()
	handle := func(context.Context, *subscriber.Event, orderPlaced) error { return nil }
	for says, fill := range map[string]func(m *subscriber.Mux){
		"has no handlers": func(*subscriber.Mux) {},
		"has a handler":   func(m *subscriber.Mux) { subscriber.OnPayload(m, handle); subscriber.OnPayload(m, handle) },
		"needs an action": func(m *subscriber.Mux) { subscriber.On(m, "", handle) },
		"and a function":  func(m *subscriber.Mux) { subscriber.On[orderPlaced](m, "A", nil) },
	} {
		m := subscriber.NewMux()
		fill(m)
		if _, err := m.Handler(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; want something with %q", err, says)
		}
	}
}
