package servicebus

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

// link is the part of azservicebus.Sender that a publisher uses. Safe for concurrent
// use.
type link interface {
	// open connects, unless that is done.
	open(ctx context.Context) error
	// newBatch returns an empty batch that knows the size limit of the entity.
	newBatch(ctx context.Context) (batch, error)
	// send sends a batch of newBatch, all of which is accepted, or nothing; or without one
	// the message m, for which another limit holds.
	send(ctx context.Context, b batch, m *azservicebus.AMQPAnnotatedMessage) error
	Close(ctx context.Context) error
}

// batch is azservicebus.MessageBatch. A message that does not fit is refused with
// azservicebus.ErrMessageTooLarge and leaves the batch as it was.
type batch interface {
	AddAMQPAnnotatedMessage(m *azservicebus.AMQPAnnotatedMessage, o *azservicebus.AddAMQPAnnotatedMessageOptions) error
}

// senderLink is the link of a real sender. It stands between the many goroutines that
// send and the client, which is not made for them in two ways:
//
//   - Goroutines that meet a sender without a connection connect it once each, and all
//     connections but the last are lost with their token refreshers
//     (internal/amqpLinks.go, Get). So one connects a sender before the others see it.
//   - A sender whose link the broker has ended for a reason that the client takes for
//     fatal, a disabled entity or an expired token, is left as it is: every later send
//     fails the same way (Retry). So a sender that failed in such a way is replaced.
type senderLink struct {
	make    func() (*azservicebus.Sender, error)
	current atomic.Pointer[azservicebus.Sender] // connected; nil = the next one connects
	turn    chan struct{}                       // capacity 1: held while connecting
	tries   atomic.Uint64                       // how often that was tried
	failure error                               // of the last try; guarded by turn
}

func newSenderLink(sender func() (*azservicebus.Sender, error)) *senderLink {
	return &senderLink{make: sender, turn: make(chan struct{}, 1)}
}

// closeTimeout bounds the closing of a sender that is replaced.
const closeTimeout = 5 * time.Second

// use calls do with a connected sender and drops the sender if it is of no more use.
func (l *senderLink) use(ctx context.Context, do func(*azservicebus.Sender) error) error {
	sender := l.current.Load()
	if sender == nil {
		var err error
		if sender, err = l.connect(ctx); err != nil {
			return err
		}
	}
	err := said(do(sender))
	if err != nil && isSpent(err) && l.current.CompareAndSwap(sender, nil) {
		discard(ctx, sender)
	}
	return err
}

// connect opens a sender and connects it. Who waits for another's try shares its result,
// unless the other gave up.
func (l *senderLink) connect(ctx context.Context) (*azservicebus.Sender, error) {
	tries := l.tries.Load()
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if sender := l.current.Load(); sender != nil {
		return sender, nil
	}
	if l.tries.Load() != tries {
		return nil, l.failure
	}
	sender, err := l.make()
	if err == nil {
		if _, err = sender.NewMessageBatch(ctx, nil); err != nil {
			discard(ctx, sender)
		}
	}
	if errors.Is(ctx.Err(), context.Canceled) && err != nil {
		return nil, err // says nothing about the broker
	}
	l.tries.Add(1)
	if l.failure = said(err); err != nil {
		return nil, l.failure
	}
	l.current.Store(sender)
	return sender, nil
}

func discard(ctx context.Context, sender *azservicebus.Sender) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	_ = sender.Close(ctx) // what it was connected to is gone already
}

// isSpent reports whether err shows that the sender's link or connection has ended, or
// that its token has.
func isSpent(err error) bool {
	if _, ended := errors.AsType[*amqp.LinkError](err); ended {
		return true
	}
	if answer, ok := errors.AsType[*notAcceptedError](err); ok {
		return answer.outcome.Condition == amqp.ErrCondUnauthorizedAccess
	}
	coded, _ := errors.AsType[*azservicebus.Error](err)
	return coded != nil && (coded.Code == azservicebus.CodeUnauthorizedAccess || coded.Code == azservicebus.CodeConnectionLost)
}

func (l *senderLink) newBatch(ctx context.Context) (b batch, err error) {
	err = l.use(ctx, func(s *azservicebus.Sender) error {
		var err error
		b, err = s.NewMessageBatch(ctx, nil)
		return err
	})
	return b, err
}

func (l *senderLink) send(ctx context.Context, b batch, m *azservicebus.AMQPAnnotatedMessage) error {
	return l.use(ctx, func(s *azservicebus.Sender) error {
		if b == nil {
			return s.SendAMQPAnnotatedMessage(ctx, m, nil)
		}
		return s.SendMessageBatch(ctx, b.(*azservicebus.MessageBatch), nil)
	})
}

func (l *senderLink) open(ctx context.Context) error {
	if l.current.Load() != nil {
		return nil
	}
	_, err := l.connect(ctx)
	return err
}

// Close implements link. It fails only when ctx ends first: of a link or connection that
// the broker has ended already the client tells no more than a text
// (internal/amqpLinks.go, closeWithoutLocking), and that one is closed.
func (l *senderLink) Close(ctx context.Context) error {
	sender := l.current.Swap(nil)
	if sender == nil {
		return nil
	}
	if err := sender.Close(ctx); err != nil {
		return ctx.Err()
	}
	return nil
}
