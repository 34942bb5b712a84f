package subscriber

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/Azure/go-amqp"
)

// lockDuration returns the lock duration of a message that was just received, or 0 if it is unknown.
func lockDuration(m *amqp.Message) time.Duration {
	until, ok := m.Annotations["x-opt-locked-until"].(time.Time)
	if !ok {
		return 0
	}
	return time.Until(until)
}

func (l *link) renewLock(ctx context.Context, m *amqp.Message) error {
	token, err := lockToken(m)
	if err != nil {
		return err
	}
	_, err = l.conn.manage(ctx, l.LinkName(), "renew-lock", map[string]any{"lock-tokens": []amqp.UUID{token}})
	return err
}

// lockToken returns the lock token in the delivery tag. The tag is a .NET Guid, whose first three fields
// are little-endian.
func lockToken(m *amqp.Message) (token amqp.UUID, err error) {
	if len(m.DeliveryTag) != len(token) {
		return token, errors.New("the message has no lock token")
	}
	copy(token[:], m.DeliveryTag)
	slices.Reverse(token[:4])
	slices.Reverse(token[4:6])
	slices.Reverse(token[6:8])
	return token, nil
}
