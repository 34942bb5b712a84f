package servicebus

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

// link is the part of azservicebus.Sender that a publisher uses. Safe for concurrent
// use.
type link interface {
	// newBatch returns an empty batch that knows the size limit of the entity. The
	// first call connects.
	newBatch(ctx context.Context) (batch, error)
	// sendBatch sends a batch of newBatch. All of it is accepted, or nothing.
	sendBatch(ctx context.Context, b batch) error
	// sendOne sends one message outside of a batch, where another limit holds.
	sendOne(ctx context.Context, m *azservicebus.AMQPAnnotatedMessage) error
	Close(ctx context.Context) error
}

// batch is azservicebus.MessageBatch. A message that does not fit is refused with
// azservicebus.ErrMessageTooLarge and leaves the batch as it was.
type batch interface {
	AddAMQPAnnotatedMessage(m *azservicebus.AMQPAnnotatedMessage, o *azservicebus.AddAMQPAnnotatedMessageOptions) error
	NumBytes() uint64
}

// senderLink is the link of a real sender. The client leaves a sender alone whose link
// the broker has ended for a reason that it takes for fatal, such as a disabled entity
// or an expired token: every later send fails the same way, whatever has become of the
// reason (internal/amqpLinks.go, Retry). Such a sender is replaced.
type senderLink struct {
	open func() (*azservicebus.Sender, error)

	mu     sync.Mutex // guards sender
	sender *azservicebus.Sender
}

// replaceTimeout bounds the closing of a sender that is replaced.
const replaceTimeout = 5 * time.Second

// use calls do with the sender and replaces it if its link has ended for good.
func (l *senderLink) use(ctx context.Context, do func(*azservicebus.Sender) error) error {
	l.mu.Lock()
	if l.sender == nil {
		sender, err := l.open()
		if err != nil {
			l.mu.Unlock()
			return err
		}
		l.sender = sender
	}
	sender := l.sender
	l.mu.Unlock()
	err := do(sender)
	if err == nil || !endedForGood(err) {
		return err
	}
	l.mu.Lock()
	mine := l.sender == sender
	if mine {
		l.sender = nil
	}
	l.mu.Unlock()
	if mine {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replaceTimeout)
		defer cancel()
		_ = sender.Close(ctx) // its link is gone already
	}
	return err
}

// endedForGood reports whether err shows a link that the client will not restore.
func endedForGood(err error) bool {
	if _, ended := errors.AsType[*amqp.LinkError](err); ended {
		return true
	}
	coded, _ := errors.AsType[*azservicebus.Error](err)
	return coded != nil && coded.Code == azservicebus.CodeUnauthorizedAccess
}

func (l *senderLink) newBatch(ctx context.Context) (b batch, err error) {
	err = l.use(ctx, func(s *azservicebus.Sender) error {
		var err error
		b, err = s.NewMessageBatch(ctx, nil)
		return err
	})
	return b, err
}

func (l *senderLink) sendBatch(ctx context.Context, b batch) error {
	return l.use(ctx, func(s *azservicebus.Sender) error {
		return s.SendMessageBatch(ctx, b.(*azservicebus.MessageBatch), nil)
	})
}

func (l *senderLink) sendOne(ctx context.Context, m *azservicebus.AMQPAnnotatedMessage) error {
	return l.use(ctx, func(s *azservicebus.Sender) error {
		return s.SendAMQPAnnotatedMessage(ctx, m, nil)
	})
}

// Close implements link.
func (l *senderLink) Close(ctx context.Context) error {
	l.mu.Lock()
	sender := l.sender
	l.sender = nil
	l.mu.Unlock()
	if sender == nil {
		return nil
	}
	return sender.Close(ctx)
}
