package handling

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"feedbox/infrastructure/consumer"
)

// breakers are the circuit breakers of a consumer, one for each Policy.Dependency:
//
//	          unavailable                  pause over: one event is tried
//	[closed] -------------> [open] ---------------------------------------> [probing]
//	   ^                      ^             unavailable, or interrupted        |
//	   |                      +------------------------------------------------+
//	   +------------------- any other result ----------------------------------+
//
// While a breaker is not closed, the results of calls that began before do not change it, because they may be
// older than those that opened it.
type breakers struct {
	mu     sync.Mutex // guards byName and the breakers
	byName map[string]*breaker
}

type breaker struct {
	failures int // consecutive; 0: closed
	next     time.Time
	probing  bool
}

// errUntried delays an event because another one is tried first.
var errUntried = errors.New("not tried, because the dependency was unavailable for another event")

// IsUntried reports whether err delays an event without a call of the handler, so that nothing is counted.
func IsUntried(err error) bool { return errors.Is(err, errUntried) }

// admit returns an error of consumer.Unavailable if the handler of an action with this dependency must not be
// called now. Otherwise report must be called with probe and the result.
func (b *breakers) admit(dependency string) (probe bool, err error) {
	if dependency == "" {
		return false, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch one := b.byName[dependency]; {
	case one == nil || one.failures == 0:
		return false, nil
	case !one.probing && !time.Now().Before(one.next):
		one.probing = true
		return true, nil
	}
	return false, consumer.Unavailable(fmt.Errorf("%s: %w", dependency, errUntried))
}

// withdraw ends a probe that was not made.
func (b *breakers) withdraw(dependency string, probe bool) {
	if probe {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.byName[dependency].probing = false
	}
}

// report records the result of a call that was admitted. pause is that after n failures.
func (b *breakers) report(ctx context.Context, log *slog.Logger, dependency string, probe bool, err error, pause func(n int) time.Duration) {
	if dependency == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byName == nil {
		b.byName = make(map[string]*breaker)
	}
	one := b.byName[dependency]
	if one == nil {
		one = &breaker{}
		b.byName[dependency] = one
	}
	parking := errors.Is(err, consumer.ErrParking) // of the inbox: it says nothing about the dependency
	unavailable := IsUnavailable(err) && !parking
	switch {
	case !probe && (one.failures > 0 || !unavailable):
	case probe && (ctx.Err() != nil && err != nil || parking): // nothing is known
		one.probing = false
	case unavailable:
		if one.failures++; one.failures == 1 {
			log.WarnContext(ctx, "dependency of the handler unavailable; one event at a time is tried", "dependency", dependency, "error", err)
		}
		one.next, one.probing = time.Now().Add(pause(one.failures)), false
	default:
		log.InfoContext(ctx, "dependency of the handler available again", "dependency", dependency, "failures", one.failures)
		*one = breaker{}
	}
}
