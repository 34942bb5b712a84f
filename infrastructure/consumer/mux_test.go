package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"feedbox/infrastructure/consumer"
)

type orderPlaced struct{ Total int }

func (orderPlaced) Action() string { return "OrderPlacedEvent" }

func ExampleMux() {
	m := consumer.NewMux()
	consumer.OnPayload(m, func(_ context.Context, e *consumer.Event, placed orderPlaced) error {
		fmt.Println(e.Key, "placed for", placed.Total)
		return nil
	})
	handle, err := m.Handler() // for NewSessionProcessor
	if err != nil {
		panic(err)
	}
	_ = handle(context.Background(), &consumer.Event{Key: "order-7", Action: "OrderPlacedEvent", Body: []byte(`{"total":5}`)})
	// Output: order-7 placed for 5
}

func TestMuxCallsTheHandlerOfTheAction(t *testing.T) {
	t.Parallel()
	m := consumer.NewMux()
	refused := errors.New("refused")
	consumer.OnPayload(m, func(_ context.Context, _ *consumer.Event, placed orderPlaced) error {
		if placed.Total != 5 {
			t.Errorf("placed for %d", placed.Total)
		}
		return nil
	})
	consumer.On(m, "Refused", func(context.Context, *consumer.Event, map[string]any) error { return refused })
	handle, err := m.Handler()
	if err != nil {
		t.Fatal(err)
	}
	event := func(action, body string) error {
		return handle(t.Context(), &consumer.Event{Action: action, Body: []byte(body)})
	}
	if err := event("OrderPlacedEvent", `{"total":5}`); err != nil {
		t.Error(err)
	}
	if err := event("Refused", `{}`); !errors.Is(err, refused) {
		t.Errorf("the handler's error is lost: %v", err)
	}
	dead, ok := errors.AsType[*consumer.DeadLetterError](event("OrderPlacedEvent", `{"total":"five"}`))
	if !ok || dead.Reason != consumer.ReasonUndecodable {
		t.Errorf("a body that cannot be decoded: %v", dead)
	}
	if err := event("Unknown", `?`); err != nil {
		t.Errorf("an action without a handler: %v", err)
	}
	m.Otherwise(func(_ context.Context, e *consumer.Event) error { return errors.New("no handler for " + e.Action) })
	if err := event("Unknown", `?`); err == nil {
		t.Error("the Otherwise handler was not called")
	}
}

func TestMuxReportsInvalidHandlers(t *testing.T) {
	t.Parallel()
	handle := func(context.Context, *consumer.Event, orderPlaced) error { return nil }
	for text, add := range map[string]func(m *consumer.Mux){
		"has no handlers": func(*consumer.Mux) {},
		"has a handler":   func(m *consumer.Mux) { consumer.OnPayload(m, handle); consumer.OnPayload(m, handle) },
		"needs an action": func(m *consumer.Mux) { consumer.On(m, "", handle) },
		"and a function":  func(m *consumer.Mux) { consumer.On[orderPlaced](m, "A", nil) },
	} {
		m := consumer.NewMux()
		add(m)
		if _, err := m.Handler(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v does not contain %q", err, text)
		}
	}
}

// A longer reason would not fit into a message of some broker, and the kit would try again for ever.
func TestReasonOfADeadLetterIsShort(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"unknown", strings.Repeat("ü", 2000)} {
		letter, ok := errors.AsType[*consumer.DeadLetterError](consumer.DeadLetter(text, nil))
		if !ok || letter.Reason != text[:min(len(text), 1024)] {
			t.Errorf("a reason of %d bytes has %d", len(text), len(letter.Reason))
		}
	}
}

// AMQP has no text that ends within a letter, so the event could not be dead-lettered.
func TestReasonOfADeadLetterEndsWithALetter(t *testing.T) {
	t.Parallel()
	for lead := range 4 {
		text := strings.Repeat("x", lead) + strings.Repeat("€", 2000)
		letter := consumer.DeadLetterError{Reason: text, Err: errors.New(text)}
		for name, got := range map[string]string{"reason": letter.Code(), "description": letter.Description()} {
			if !utf8.ValidString(got) || !strings.HasPrefix(text, got) || len(got) > 1024 || len(got) < 1022 {
				t.Errorf("the %s after %d bytes has %d, the last ones %q", name, lead, len(got), got[max(0, len(got)-3):])
			}
		}
	}
}
