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
	acceptTimeout      = "com.microsoft:timeout" // milliseconds that the broker waits for a session
	lockedUntil        = "com.microsoft:locked-until-utc"
	conditionTimeout   = amqp.ErrCond("com.microsoft:timeout")
	conditionCancelled = amqp.ErrCond("com.microsoft:operation-cancelled")
)

const (
	// acceptTime is how long the broker is to wait for a session that has messages.
	acceptTime = time.Minute
	// acceptGrace is how much longer its answer is waited for.
	acceptGrace = 15 * time.Second
)

// errNoneWaiting says that no session had messages in the time the broker waited.
var errNoneWaiting = errors.New("no session has messages")

// accepted is a session that this process holds.
type accepted struct {
	*link
	id   string
	term time.Duration // of its lock; 0 = not told
}

// acceptNext locks the next session that has messages, of which the broker sends prefetch
// ahead. It returns errNoneWaiting if there was none for a minute.
func (c *connection) acceptNext(ctx context.Context, prefetch int) (*accepted, error) {
	ctx, cancel := context.WithTimeout(ctx, acceptTime+acceptGrace)
	defer cancel()
	l, err := c.attach(ctx, &amqp.ReceiverOptions{
		SettlementMode: amqp.ReceiverSettleModeSecond.Ptr(), Credit: int32(prefetch),
		Filters:    []amqp.LinkFilter{amqp.NewLinkFilter(sessionFilter, sessionFilterCode, nil)},
		Properties: map[string]any{acceptTimeout: uint32(acceptTime / time.Millisecond)},
	})
	switch {
	case wire.HasCondition(err, conditionTimeout), wire.HasCondition(err, conditionCancelled):
		return nil, errNoneWaiting
	case err != nil:
		return nil, fmt.Errorf("accept a session: %w", err)
	}
	s := &accepted{link: l}
	var ok bool
	if s.id, ok = l.LinkSourceFilterValue(sessionFilter).(string); !ok {
		_ = l.detach(ctx) // it is of no use
		return nil, errors.New("accept a session: the broker granted one without an id")
	}
	if ticks, ok := l.Properties()[lockedUntil].(int64); ok {
		s.term = time.Until(timeOf(ticks))
	}
	return s, nil
}

// timeOf is a time as .NET counts it: 100 ns since the year 1.
func timeOf(ticks int64) time.Time {
	const epoch = 621355968000000000
	ticks -= epoch
	return time.Unix(ticks/1e7, ticks%1e7*100)
}
