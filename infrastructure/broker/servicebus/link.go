package servicebus

import (
	"context"
	"errors"

	"github.com/Azure/go-amqp"

	"feedbox/infrastructure/broker/internal/shared"
	"feedbox/infrastructure/broker/servicebus/internal/wire"
)

// link is where a publisher sends to. Safe for concurrent use.
type link interface {
	// open connects, unless that is done, and returns how many bytes a batch may have.
	open(ctx context.Context) (maxBatch int, err error)
	// send sends a message or a batch. It is accepted as a whole, or there is an error.
	send(ctx context.Context, m *amqp.Message) error
	close(ctx context.Context) error
}

// senderLink is the link of a client to an entity. It is attached anew once it has ended.
type senderLink struct {
	client *Client
	entity string
	shared *shared.Shared[attached]
}

type attached struct {
	*amqp.Sender
	conn     *wire.Conn
	leave    func()
	maxBatch int
}

func newSenderLink(client *Client, entity string) *senderLink {
	l := &senderLink{client: client, entity: entity}
	l.shared = shared.NewShared(l.attach, func(ctx context.Context, a *attached) error {
		_ = a.Close(ctx) // fails if it has ended; goes on by itself if ctx ends
		a.leave()
		return nil
	})
	return l
}

// attachError is why a link was not attached: the broker has seen no message on it.
type attachError struct{ err error }

func (e *attachError) Error() string { return e.err.Error() }

func (e *attachError) Unwrap() error { return e.err }

func (l *senderLink) attach(ctx context.Context) (*attached, error) {
	conn, err := l.client.connection(ctx)
	if err != nil {
		return nil, &attachError{err}
	}
	a := &attached{conn: conn}
	if err = conn.Claim(ctx, l.entity); err == nil {
		a.leave, err = conn.Attach(ctx, func(s *amqp.Session) (err error) {
			a.Sender, err = s.NewSender(ctx, l.entity, &amqp.SenderOptions{
				SettlementMode: amqp.SenderSettleModeMixed.Ptr(), RequestedReceiverSettleMode: amqp.ReceiverSettleModeFirst.Ptr(),
			})
			return err
		})
	}
	if err != nil {
		l.dropBroken(ctx, conn, err)
		return nil, &attachError{err}
	}
	a.maxBatch = maxBatch(a.Sender)
	return a, nil
}

// maxBatch is how many bytes a batch may have. A property says that where single messages
// may be larger, and an entity that says nothing gets what all of them take.
func maxBatch(s *amqp.Sender) int {
	const least = 256 << 10
	limit := s.MaxMessageSize()
	switch told := s.Properties()["com.microsoft:max-message-batch-size"].(type) {
	case uint64:
		limit = told
	case uint32:
		limit = uint64(told)
	case int64:
		limit = uint64(max(told, 0))
	}
	if limit == 0 {
		return least
	}
	return int(min(limit, 1<<30))
}

func (l *senderLink) dropBroken(ctx context.Context, conn *wire.Conn, err error) {
	if wire.Broken(err) {
		l.client.shared.Drop(ctx, conn)
	}
}

func (l *senderLink) open(ctx context.Context) (maxBatch int, err error) {
	a, err := l.shared.Get(ctx)
	if err != nil {
		return 0, err
	}
	return a.maxBatch, nil
}

func (l *senderLink) send(ctx context.Context, m *amqp.Message) error {
	a, err := l.shared.Get(ctx)
	if err != nil {
		return err
	}
	receipt, err := a.SendWithReceipt(ctx, m, nil)
	cut := err != nil && ctx.Err() != nil // perhaps amid the frames of m, and other messages must not follow
	if err == nil {
		var state amqp.DeliveryState
		if state, err = receipt.Wait(ctx); err == nil {
			err = outcome(state)
		}
	}
	if cut || hasEnded(err) || wire.HasCondition(err, amqp.ErrCondUnauthorizedAccess) { // the next link gets a new token
		l.shared.Drop(ctx, a)
		l.dropBroken(ctx, a.conn, err)
	}
	return err
}

func (l *senderLink) close(ctx context.Context) error { return l.shared.Close(ctx) }

// hasEnded reports whether an error shows that a link has ended, by itself or with its
// connection.
func hasEnded(err error) bool {
	_, ended := errors.AsType[*amqp.LinkError](err)
	return ended || wire.Broken(err)
}

// notAcceptedError is an outcome of a delivery: the error of a rejection, or one whose
// condition is the name of the outcome.
type notAcceptedError struct{ outcome amqp.Error }

func (e *notAcceptedError) Error() string {
	text := "the broker did not accept the message: " + string(e.outcome.Condition)
	if e.outcome.Description != "" {
		text += ": " + e.outcome.Description
	}
	return text
}

func (e *notAcceptedError) Unwrap() error { return &e.outcome }

// outcome is nil for accepted only.
func outcome(state amqp.DeliveryState) error {
	e := &notAcceptedError{amqp.Error{Condition: "no outcome"}}
	switch state := state.(type) {
	case *amqp.StateAccepted:
		return nil
	case *amqp.StateRejected:
		e.outcome.Condition = "rejected"
		if state.Error != nil {
			e.outcome = *state.Error
		}
	case *amqp.StateReleased:
		e.outcome.Condition = "released"
	case *amqp.StateModified:
		e.outcome.Condition = "modified"
	}
	return e
}
