package subscriber

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/go-amqp"

	"feedbox/infrastructure/broker/servicebus/internal/wire"
)

const (
	sessionFilter      = "com.microsoft:session-filter"
	sessionFilterCode  = uint64(0x137000000C)
	acceptTimeout      = "com.microsoft:timeout" // milliseconds for which the broker waits for a session
	lockedUntil        = "com.microsoft:locked-until-utc"
	conditionTimeout   = amqp.ErrCond("com.microsoft:timeout")
	conditionLocked    = amqp.ErrCond("com.microsoft:session-cannot-be-locked")
	conditionCancelled = amqp.ErrCond("com.microsoft:operation-cancelled")
)

const (
	// acceptTime is the time for which the broker waits for a session with messages.
	acceptTime = time.Minute
	// acceptGrace is the additional time in which its reply must arrive.
	acceptGrace = 15 * time.Second
)

// errNoSessionAvailable means that no session had messages within acceptTime.
var errNoSessionAvailable = errors.New("no session has messages")

// accepted is a session that the broker has locked for this process.
type accepted struct {
	*link
	id           string
	lockDuration time.Duration // 0 = unknown
}

// acceptNext accepts the next session with messages, with a credit of prefetch. It returns errNoSessionAvailable if
// there was none within acceptTime.
func (c *connection) acceptNext(ctx context.Context, prefetch int) (*accepted, error) {
	return c.accept(ctx, prefetch, nil)
}

// accept accepts the session with this id, or the next one if it is nil. A session that another process
// holds is refused with conditionLocked.
func (c *connection) accept(ctx context.Context, prefetch int, id any) (*accepted, error) {
	ctx, cancel := context.WithTimeout(ctx, acceptTime+acceptGrace)
	defer cancel()
	l, err := c.attach(ctx, &amqp.ReceiverOptions{
		SettlementMode: amqp.ReceiverSettleModeSecond.Ptr(), Credit: int32(prefetch),
		Filters:    []amqp.LinkFilter{amqp.NewLinkFilter(sessionFilter, sessionFilterCode, id)},
		Properties: map[string]any{acceptTimeout: uint32(acceptTime / time.Millisecond)},
	})
	switch {
	case wire.HasCondition(err, conditionTimeout), wire.HasCondition(err, conditionCancelled):
		return nil, errNoSessionAvailable
	case err != nil:
		return nil, fmt.Errorf("accept a session: %w", err)
	}
	s := &accepted{link: l}
	var ok bool
	if s.id, ok = l.LinkSourceFilterValue(sessionFilter).(string); !ok {
		_ = l.detach(ctx) // not usable
		return nil, errors.New("accept a session: the broker sent no session id")
	}
	if ticks, ok := l.Properties()[lockedUntil].(int64); ok {
		s.lockDuration = time.Until(timeOf(ticks))
	}
	return s, nil
}

// timeOf converts a time of .NET, which counts 100 ns since the year 1.
func timeOf(ticks int64) time.Time {
	const epoch = 621355968000000000
	ticks -= epoch
	return time.Unix(ticks/1e7, ticks%1e7*100)
}
