package servicebus

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
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

// senderLink is the link of a real sender.
type senderLink struct{ *azservicebus.Sender }

func (l senderLink) newBatch(ctx context.Context) (batch, error) {
	return l.NewMessageBatch(ctx, nil)
}

func (l senderLink) sendBatch(ctx context.Context, b batch) error {
	return l.SendMessageBatch(ctx, b.(*azservicebus.MessageBatch), nil)
}

func (l senderLink) sendOne(ctx context.Context, m *azservicebus.AMQPAnnotatedMessage) error {
	return l.SendAMQPAnnotatedMessage(ctx, m, nil)
}
