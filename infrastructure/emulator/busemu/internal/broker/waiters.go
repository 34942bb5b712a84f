package broker

import (
	"slices"
)

// waiter is a request for the next session.
type waiter struct {
	options ReceiverOptions
	opened  func(*Receiver, error)
	until   int64
	granted bool // or refused: opened has been or will be called
}

// waiters are a holder's requests for the next session, oldest first. Guarded by the holder's
// mu.
type waiters struct {
	list         []*waiter
	firstTimeout int64 // no request times out before
}

func (l *waiters) add(w *waiter) {
	if len(l.list) == 0 || w.until < l.firstTimeout {
		l.firstTimeout = w.until
	}
	l.list = append(l.list, w)
}

// pop removes the oldest waiter; nil if there is none.
func (l *waiters) pop() *waiter {
	if len(l.list) == 0 {
		return nil
	}
	w := l.list[0]
	l.list[0] = nil
	l.list = l.list[1:]
	return w
}

// next returns when the first request times out, or an earlier time; 0 if there is none.
func (l *waiters) next() int64 {
	if len(l.list) == 0 {
		return 0
	}
	return l.firstTimeout
}

// cancel removes w. It returns false if w was granted or refused before.
func (l *waiters) cancel(w *waiter) bool {
	if w.granted {
		return false
	}
	w.granted = true
	l.list = slices.DeleteFunc(l.list, func(x *waiter) bool { return x == w })
	return true
}

// expire refuses the requests that have timed out.
func (l *waiters) expire(now int64, path string, later *callbacks) {
	l.refuse(later, func(w *waiter) bool { return w.until <= now }, errorf(Timeout,
		"No session of '%s' became available within the time allotted to the request.", path))
	for i, w := range l.list {
		if i == 0 || w.until < l.firstTimeout {
			l.firstTimeout = w.until
		}
	}
}

func (l *waiters) refuse(later *callbacks, which func(*waiter) bool, err error) {
	l.list = slices.DeleteFunc(l.list, func(w *waiter) bool {
		if !which(w) {
			return false
		}
		w.granted = true
		later.call(func() { w.opened(nil, err) })
		return true
	})
}
