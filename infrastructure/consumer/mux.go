package consumer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Mux passes each event to the handler of its action, with its body decoded. Handlers are added with
// On and OnPayload before Handler is called.
type Mux struct {
	handlers  map[string]Handler
	otherwise Handler
	faults    []error
}

// NewMux returns a mux without handlers.
func NewMux() *Mux { return &Mux{handlers: make(map[string]Handler)} }

// On adds the handler of an action. The payload is the body decoded by encoding/json. An event whose
// body cannot be decoded is dead-lettered (ReasonUndecodable).
func On[P any](m *Mux, action string, handle func(ctx context.Context, e *Event, payload P) error) {
	switch {
	case action == "" || handle == nil:
		m.faults = append(m.faults, fmt.Errorf("consumer: a handler (of %q) needs an action and a function", action))
		return
	case m.handlers[action] != nil:
		m.faults = append(m.faults, fmt.Errorf("consumer: action %s already has a handler", action))
		return
	}
	if m.handlers == nil {
		m.handlers = make(map[string]Handler)
	}
	m.handlers[action] = func(ctx context.Context, e *Event) error {
		var payload P
		if err := json.Unmarshal(e.Body, &payload); err != nil {
			return DeadLetter(ReasonUndecodable, fmt.Errorf("%s as a %T: %w", action, payload, err))
		}
		return handle(ctx, e, payload)
	}
}

// OnPayload calls On with the action that the zero value of P names. The payloads of
// aggregate.Record have this method.
func OnPayload[P interface{ Action() string }](m *Mux, handle func(ctx context.Context, e *Event, payload P) error) {
	var none P
	On(m, none.Action(), handle)
}

// Otherwise sets the handler of all other actions. Default: their events are completed, because a
// subscription may carry events that this consumer does not need.
func (m *Mux) Otherwise(handle Handler) { m.otherwise = handle }

// Handler returns the combined handler, or the errors of the earlier calls.
func (m *Mux) Handler() (Handler, error) {
	if len(m.handlers) == 0 && m.otherwise == nil && len(m.faults) == 0 {
		return nil, errors.New("consumer: the mux has no handlers")
	}
	if err := errors.Join(m.faults...); err != nil {
		return nil, err
	}
	return func(ctx context.Context, e *Event) error {
		handle := m.handlers[e.Action]
		switch {
		case handle != nil:
			return handle(ctx, e)
		case m.otherwise != nil:
			return m.otherwise(ctx, e)
		default:
			return nil
		}
	}, nil
}
