package servicebus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

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

// senderLink is the link of a client to an entity. It attaches again after the link has ended, and
// replaces a silent link and then its connection (doc.go).
type senderLink struct {
	client *Client
	entity string
	log    *slog.Logger
	shared *shared.Resource[attachment]

	mu         sync.Mutex // guards unanswered and attachment.silent
	unanswered int        // timeouts since the last outcome
}

// attachment is an attached link.
type attachment struct {
	*amqp.Sender
	conn     *wire.Conn
	release  func() // its place in the AMQP session
	maxBatch int
	silent   bool // it was replaced because its sends were not answered
}

const (
	// maxUnanswered is the number of timeouts without an outcome in between after which a link is
	// replaced. One timeout can be a single lost outcome, and a new attach takes several round trips.
	maxUnanswered = 2
	// detachTimeout bounds the wait for the broker's reply to a detach. It is short, because a silent
	// broker does not reply at all.
	detachTimeout = time.Second
)

func newSenderLink(client *Client, entity string, log *slog.Logger) *senderLink {
	l := &senderLink{client: client, entity: entity, log: log}
	l.shared = shared.New(l.attach, func(ctx context.Context, a *attachment) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), detachTimeout)
		defer cancel()
		// Without a reply, the broker may still use the handle, so its place stays taken until the
		// connection ends.
		if err := a.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			a.release()
		}
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
		// A request for a token has a shorter timeout of its own.
		if errors.Is(context.Cause(ctx), errUnanswered) || ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			l.noteTimeout(ctx, a)
		}
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
	var state amqp.DeliveryState
	if err == nil {
		state, err = receipt.Wait(ctx)
	}
	switch {
	case err == nil:
		l.noteOutcome(a)
		err = outcome(state)
	case errors.Is(context.Cause(ctx), errUnanswered):
		err = fmt.Errorf("%w: %w", errUnanswered, err)
		l.noteTimeout(ctx, a)
	}
	if canceled || hasEnded(err) || wire.HasCondition(err, amqp.ErrCondUnauthorizedAccess) { // the next link gets a new token
		l.shared.Drop(ctx, a)
		l.dropBroken(ctx, a.conn, err)
	}
	return err
}

// errUnanswered is the cause of the end of an attempt that took too long. An attempt that ends with its
// Publish call has another cause. It may have been short, so it is no evidence against the link.
var errUnanswered = errors.New("the broker did not answer in time")

// noteOutcome records that the broker has answered a send.
func (l *senderLink) noteOutcome(a *attachment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !a.silent { // otherwise it is late, and says nothing about the new link
		l.unanswered = 0
	}
}

// noteTimeout counts a timeout on a, and replaces the link or its connection after maxUnanswered
// timeouts. A link that could not be attached has no predecessor on the connection, so the connection
// is replaced at once.
func (l *senderLink) noteTimeout(ctx context.Context, a *attachment) {
	l.mu.Lock()
	if a.silent { // another send has replaced it
		l.mu.Unlock()
		return
	}
	l.unanswered++
	timeouts := l.unanswered
	replace := timeouts%maxUnanswered == 0
	replaceConn := replace && (a.Sender == nil || timeouts >= 2*maxUnanswered)
	a.silent = replace
	if replaceConn {
		l.unanswered = 0
	}
	l.mu.Unlock()
	if replace {
		l.log.WarnContext(ctx, "link replaced: broker does not answer", "entity", l.entity, "timeouts", timeouts, "connection_too", replaceConn)
		l.shared.Drop(ctx, a)
	}
	if replaceConn {
		l.client.shared.Drop(ctx, a.conn)
	}
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
