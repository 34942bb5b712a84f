package subscriber

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// source hands out sessions.
type source interface {
	// accept locks the next session that has messages. It returns errNoSession if none
	// turned up in the time the broker waits.
	accept(ctx context.Context) (session, error)
}

var errNoSession = errors.New("no session has messages")

// session is a locked session. receive is called by one goroutine at a time.
type session interface {
	SessionID() string
	LockedUntil() time.Time // asked once, before anything else is done with the session
	receive(ctx context.Context, limit int) ([]*azservicebus.ReceivedMessage, error)
	complete(ctx context.Context, m *azservicebus.ReceivedMessage) error
	abandon(ctx context.Context, m *azservicebus.ReceivedMessage) error
	deadLetter(ctx context.Context, m *azservicebus.ReceivedMessage, reason, description string) error
	renew(ctx context.Context) error
	Close(ctx context.Context) error
}

// subscription is the source of a real subscription.
type subscription struct {
	client      *azservicebus.Client
	topic, name string
}

func (s subscription) accept(ctx context.Context) (session, error) {
	r, err := s.client.AcceptNextSessionForSubscription(ctx, s.topic, s.name, nil)
	if coded, ok := errors.AsType[*azservicebus.Error](err); ok && coded.Code == azservicebus.CodeTimeout {
		return nil, errNoSession
	}
	if err != nil {
		return nil, err
	}
	return lockedSession{r}, nil
}

// lockedSession is the session of a real subscription.
type lockedSession struct{ *azservicebus.SessionReceiver }

// gatherTime is how long a receive waits for more after its first message: no longer
// than it takes to see what has arrived already.
const gatherTime = time.Millisecond

func (s lockedSession) receive(ctx context.Context, limit int) ([]*azservicebus.ReceivedMessage, error) {
	return s.ReceiveMessages(ctx, limit, &azservicebus.ReceiveMessagesOptions{TimeAfterFirstMessage: gatherTime})
}

func (s lockedSession) complete(ctx context.Context, m *azservicebus.ReceivedMessage) error {
	return s.CompleteMessage(ctx, m, nil)
}

func (s lockedSession) abandon(ctx context.Context, m *azservicebus.ReceivedMessage) error {
	return s.AbandonMessage(ctx, m, nil)
}

func (s lockedSession) deadLetter(ctx context.Context, m *azservicebus.ReceivedMessage, reason, description string) error {
	return s.DeadLetterMessage(ctx, m, &azservicebus.DeadLetterOptions{Reason: &reason, ErrorDescription: &description})
}

func (s lockedSession) renew(ctx context.Context) error {
	return s.RenewSessionLock(ctx, nil)
}
