package mediator_test

import (
	"context"
	"errors"
	"testing"

	"feedbox/application/mediator"
	"feedbox/domain/contact"
	"feedbox/domain/event"
)

type double struct{ n int }

func (double) Returns(int) {}

type shout struct{ text string }

func (shout) Returns(string) {}

func TestSendFindsHandlerByType(t *testing.T) {
	t.Parallel()
	m := mediator.New()
	err := errors.Join(
		mediator.Register(m, func(_ context.Context, in double) (int, error) { return 2 * in.n, nil }),
		mediator.Register(m, func(_ context.Context, in shout) (string, error) { return in.text + "!", nil }),
	)
	if err != nil {
		t.Fatal(err)
	}
	four, err := mediator.Send(t.Context(), m, double{n: 2})
	if err != nil || four != 4 {
		t.Errorf("double: %d, %v", four, err)
	}
	loud, err := mediator.Send(t.Context(), m, shout{text: "hey"})
	if err != nil || loud != "hey!" {
		t.Errorf("shout: %q, %v", loud, err)
	}
}

func TestMissingAndSecondHandlerAreErrors(t *testing.T) {
	t.Parallel()
	m := mediator.New()
	if _, err := mediator.Send(t.Context(), m, double{}); err == nil {
		t.Error("a request without a handler is answered")
	}
	handler := func(context.Context, double) (int, error) { return 0, nil }
	if err := mediator.Register(m, handler); err != nil {
		t.Fatal(err)
	}
	if err := mediator.Register(m, handler); err == nil {
		t.Error("a second handler is accepted")
	}
}

type outbox struct{ added []event.Event }

func (o *outbox) Add(_ context.Context, e event.Event) error {
	o.added = append(o.added, e)
	return nil
}

func TestPublishCallsEveryHandlerOfType(t *testing.T) {
	t.Parallel()
	m := mediator.New()
	seen := 0
	store := func(ctx context.Context, o mediator.Outbox, e contact.ContactDeletedEvent) error {
		return o.Add(ctx, e)
	}
	count := func(context.Context, mediator.Outbox, contact.ContactDeletedEvent) error { seen++; return nil }
	mediator.Subscribe(m, store)
	mediator.Subscribe(m, count)
	var box outbox
	if err := m.Publish(t.Context(), &box, contact.ContactDeletedEvent{}); err != nil {
		t.Fatal(err)
	}
	if len(box.added) != 1 || seen != 1 {
		t.Errorf("added %d, seen %d; want 1 and 1", len(box.added), seen)
	}
}

func TestPublishReturnsHandlerAndDispatchErrors(t *testing.T) {
	t.Parallel()
	m := mediator.New()
	failed := errors.New("failed")
	mediator.Subscribe(m, func(context.Context, mediator.Outbox, contact.ContactDeletedEvent) error { return failed })
	if err := m.Publish(t.Context(), &outbox{}, contact.ContactDeletedEvent{}); !errors.Is(err, failed) {
		t.Errorf("a failing handler: %v", err)
	}
	if err := m.Publish(t.Context(), &outbox{}, contact.ContactNameUpdatedEvent{}); err == nil {
		t.Error("an event without a handler is accepted")
	}
	if err := m.Publish(t.Context(), &outbox{}, impostor{}); err == nil {
		t.Error("an event of another type under the same action is accepted")
	}
}

type impostor struct {
	contact.ContactNameUpdatedEvent
}

func (impostor) Action() string { return contact.ActionDeleted }
