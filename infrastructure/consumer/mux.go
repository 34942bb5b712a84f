package consumer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Mux gives each event to the handler of its action, with its body decoded. It is filled
// with On and OnPayload before Handler is called.
type Mux struct {
	handlers  map[string]Handler
	otherwise Handler
	faults    []error
}

// NewMux returns a mux without handlers.
func NewMux() *Mux { return &Mux{handlers: make(map[string]Handler)} }

// On makes handle the handler of an action. Its payload is the body, as encoding/json
// decodes it; a body that cannot be decoded is dead-lettered (ReasonUndecodable).
func On[P any](m *Mux, action string, handle func(ctx context.Context, e *Event, payload P) error) {
	switch {
	case action == "" || handle == nil:
		m.faults = append(m.faults, fmt.Errorf("consumer: a handler (of %q) needs an action and a function", action))
		return
	case m.handlers[action] != nil:
		m.faults = append(m.faults, fmt.Errorf("consumer: %s has a handler already", action))
		return
	}
	m.handlers[action] = func(ctx context.Context, e *Event) error {
		var payload P
		if err := json.Unmarshal(e.Body, &payload); err != nil {
			return DeadLetter(ReasonUndecodable, fmt.Errorf("%s as a %T: %w", action, payload, err))
		}
		return handle(ctx, e, payload)
	}
}

// OnPayload is On for payloads whose zero value names their action, as those of
// aggregate.Record do.
func OnPayload[P interface{ Action() string }](m *Mux, handle func(ctx context.Context, e *Event, payload P) error) {
	var none P
	On(m, none.Action(), handle)
}

// Otherwise makes handle the handler of all other actions. Default: they are completed, as
// those that this consumer has no use for.
func (m *Mux) Otherwise(handle Handler) { m.otherwise = handle }

// Handler returns the handler for a processor, or what was wrong with the calls before.
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
