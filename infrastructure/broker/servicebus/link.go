package servicebus

import (
	"context"
	"errors"

	"github.com/Azure/go-amqp"

	"feedbox/infrastructure/broker/internal/shared"
	"feedbox/infrastructure/broker/servicebus/internal/wire"
)

// link is the link of a publisher. It is safe for concurrent use.
type link interface {
	// open connects unless the link is open, and returns the maximum size of a batch in bytes.
	open(ctx context.Context) (maxBatch int, err error)
	// send sends a message or a batch. It returns nil only if the broker accepted all of it.
	send(ctx context.Context, m *amqp.Message) error
	close(ctx context.Context) error
}

// senderLink is the link of a client to an entity. It attaches again after the link has ended.
type senderLink struct {
	client *Client
	entity string
	shared *shared.Resource[attachment]
}

// attachment is an attached link.
type attachment struct {
	*amqp.Sender
	conn     *wire.Conn
	release  func() // its place in the AMQP session
	maxBatch int
}

func newSenderLink(client *Client, entity string) *senderLink {
	l := &senderLink{client: client, entity: entity}
	l.shared = shared.New(l.attach, func(ctx context.Context, a *attachment) error {
		_ = a.Close(ctx) // fails if it has ended; continues in the background if ctx ends
		a.release()
		return nil
	})
	return l
}

// attachError means that the link was not attached, so the broker has received no message.
type attachError struct{ err error }

func (e *attachError) Error() string { return e.err.Error() }

func (e *attachError) Unwrap() error { return e.err }

func (l *senderLink) attach(ctx context.Context) (*attachment, error) {
	conn, err := l.client.connection(ctx)
	if err != nil {
		return nil, &attachError{err}
	}
	a := &attachment{conn: conn}
	if err = conn.Claim(ctx, l.entity); err == nil {
		a.release, err = conn.Attach(ctx, func(s *amqp.Session) (err error) {
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

// maxBatch returns the maximum size of a batch in bytes. It is a property of the link if single messages
// may be larger. If the link has neither limit, 256 KB is used because every entity accepts it.
func maxBatch(s *amqp.Sender) int {
	const minimum = 256 << 10
	limit := s.MaxMessageSize()
	switch size := s.Properties()["com.microsoft:max-message-batch-size"].(type) {
	case uint64:
		limit = size
	case uint32:
		limit = uint64(size)
	case int64:
		limit = uint64(max(size, 0))
	}
	if limit == 0 {
		return minimum
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
	canceled := err != nil && ctx.Err() != nil // possibly between the frames of m, so no message may follow
	if err == nil {
		var state amqp.DeliveryState
		if state, err = receipt.Wait(ctx); err == nil {
			err = outcome(state)
		}
	}
	if canceled || hasEnded(err) || wire.HasCondition(err, amqp.ErrCondUnauthorizedAccess) { // the next link gets a new token
		l.shared.Drop(ctx, a)
		l.dropBroken(ctx, a.conn, err)
	}
	return err
}

func (l *senderLink) close(ctx context.Context) error { return l.shared.Close(ctx) }

// hasEnded reports whether an error means that the link or its connection has ended.
func hasEnded(err error) bool {
	_, ended := errors.AsType[*amqp.LinkError](err)
	return ended || wire.Broken(err)
}

// notAcceptedError is the outcome of a delivery that was not accepted: the error of a rejection, or an
// error with the name of the outcome as its condition.
type notAcceptedError struct{ outcome amqp.Error }

func (e *notAcceptedError) Error() string {
	text := "the broker did not accept the message: " + string(e.outcome.Condition)
	if e.outcome.Description != "" {
		text += ": " + e.outcome.Description
	}
	return text
}

func (e *notAcceptedError) Unwrap() error { return &e.outcome }

// outcome returns nil only if the delivery was accepted.
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
