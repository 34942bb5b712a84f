package subscriber

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/Azure/go-amqp"

	"feedbox/infrastructure/broker/servicebus/internal/wire"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
)

// A lock is renewed after half of its duration, within these bounds. They limit the effect of a wrong local
// clock, because the broker sends the end of the lock by its own clock.
const minRenewal, maxRenewal = 500 * time.Millisecond, 10 * time.Second

// renewal renews a lock that is held for longer than half of its duration. It starts a goroutine only then,
// so that a short handler only costs a timer.
type renewal struct {
	duration time.Duration // of the lock
	renew    func(ctx context.Context) error
	lost     context.CancelCauseFunc // called if the lock is lost, or was not renewed within its duration
	log      *slog.Logger
	target   string // name of the locked session or message in the log

	timer  *time.Timer
	ended  chan struct{} // closed when keep has returned
	cancel context.CancelFunc
}

// start starts the renewal, which ends with ctx or with stop.
func (r *renewal) start(ctx context.Context) {
	began := time.Now()
	r.ended = make(chan struct{})
	ctx, r.cancel = context.WithCancel(ctx)
	r.timer = time.AfterFunc(renewalPause(r.duration), func() {
		defer close(r.ended)
		r.keep(ctx, began)
	})
}

// stop ends the renewal and waits for it.
func (r *renewal) stop() {
	r.cancel()
	if !r.timer.Stop() {
		<-r.ended
	}
}

func (r *renewal) keep(ctx context.Context, renewed time.Time) {
	for ctx.Err() == nil {
		err := r.renewUntil(ctx, renewed.Add(max(r.duration, requestTimeout)))
		pause := renewalPause(r.duration)
		switch {
		case err == nil:
			renewed = time.Now()
		case ctx.Err() != nil:
			return
		case errors.Is(err, consumer.ErrLockLost):
			r.lost(fmt.Errorf("%w: %w", consumer.ErrLockLost, err))
			return
		case time.Since(renewed) >= max(r.duration, minRenewal):
			r.lost(fmt.Errorf("%w: not renewed in time: %w", consumer.ErrLockLost, err))
			return
		default:
			r.log.WarnContext(ctx, "lock not renewed", "target", r.target, "error", err)
			pause = max(pause/4, minRenewal)
		}
		handling.Wait(ctx, ctx, pause)
	}
}

// renewUntil renews the lock. It ends with the lock, because another consumer may have that then. A short duration
// may be wrong, because it compares two clocks.
func (r *renewal) renewUntil(ctx context.Context, end time.Time) error {
	ctx, cancel := context.WithDeadlineCause(ctx, end, wire.ErrNoResponse)
	defer cancel()
	return r.renew(ctx)
}

func renewalPause(duration time.Duration) time.Duration {
	return min(max(duration/2, minRenewal), maxRenewal)
}

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
