package subscriber

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// requestTimeout bounds a settlement and the closing of a session. The client tries a
// settlement up to four times by itself.
const requestTimeout = 10 * time.Second

// hold works on a session until it is idle, has had its time, failed or ctx ends. Then
// it closes it, which gives back at once what was not settled.
func (s *Subscriber) hold(ctx, handling context.Context, held session) {
	locked, unlock := context.WithCancelCause(handling)
	var renewal sync.WaitGroup
	term := time.Until(held.LockedUntil()) // asked once: the client writes it without a lock when it recovers a link
	renewal.Go(func() { s.renew(locked, held, term, unlock) })
	defer func() {
		unlock(nil)
		renewal.Wait()
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		if err := held.Close(closing); err != nil {
			s.opts.Logger.WarnContext(ctx, "a session was not closed", "session", held.SessionID(), "error", err)
		}
	}()

	last, err := s.opts.Inbox.Last(locked, held.SessionID())
	if err != nil {
		s.opts.Logger.WarnContext(ctx, "the inbox does not answer", "session", held.SessionID(), "error", err)
		wait(ctx, jitter(s.opts.RetryDelay)) // holding the session, or it would be back at once
		return
	}
	receiving, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(locked, stop)() // no waiting for events of a lost session
	began := time.Now()
	for receiving.Err() == nil {
		if s.opts.SessionMax > 0 && time.Since(began) >= s.opts.SessionMax {
			return
		}
		idle, cancel := context.WithTimeout(receiving, s.opts.SessionIdle)
		messages, err := held.receive(idle, s.opts.Receive)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && receiving.Err() == nil {
			s.opts.Logger.WarnContext(ctx, "receiving failed", "session", held.SessionID(), "error", err)
		}
		if len(messages) == 0 {
			return
		}
		for _, m := range messages {
			if receiving.Err() != nil || !s.deliver(locked, held, m, &last) {
				return
			}
		}
	}
}

// deliver deals with one message and reports whether the session may go on. After an
// event was put back it may not: those behind it would overtake it. last is the mark of
// the session's key.
func (s *Subscriber) deliver(ctx context.Context, held session, m *azservicebus.ReceivedMessage, last *Mark) bool {
	out := Outcome{Event: newEvent(held.SessionID(), m)}
	out.Verdict = Judge(*last, out.Event)
	out.Err = s.apply(ctx, last, &out)
	settled := s.settle(ctx, held, m, &out)
	s.opts.Observe(ctx, out)
	if out.Action == PutBack {
		wait(ctx, jitter(s.backoff(out.Event.DeliveryCount)))
	}
	return settled && out.Action != PutBack
}

// errWaitForMissing puts an event back that came before its predecessor.
var errWaitForMissing = errors.New("an earlier event of the key is missing; put back for it to arrive")

// apply does what the verdict asks for and sets the action. A nil error means that the
// event is recorded and can be completed.
func (s *Subscriber) apply(ctx context.Context, last *Mark, out *Outcome) error {
	e := out.Event
	switch out.Verdict {
	case Duplicate, Stale:
		out.Action = Dropped
		return nil
	case Gap:
		out.Missing = e.Sequence - last.Sequence - 1
		if e.DeliveryCount <= s.opts.GapDeliveries {
			return errWaitForMissing
		}
	case Fresh:
	}
	err := s.handle(ctx, e)
	letter, dead := errors.AsType[*DeadLetterError](err)
	if err != nil && !dead {
		return err
	}
	if err := s.opts.Inbox.Record(ctx, e.Key, markOf(e)); err != nil {
		return fmt.Errorf("record event %s: %w", e.ID, err)
	}
	*last = markOf(e)
	if dead {
		return letter
	}
	return nil
}

// handle calls the handler; a panic becomes an error.
func (s *Subscriber) handle(ctx context.Context, e *Event) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &PanicError{Value: r}
		}
	}()
	return s.handler(ctx, e)
}

// settle tells the broker how the delivery ended and reports whether it has confirmed.
func (s *Subscriber) settle(ctx context.Context, held session, m *azservicebus.ReceivedMessage, out *Outcome) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	var err error
	if letter, dead := errors.AsType[*DeadLetterError](out.Err); dead {
		out.Action = DeadLettered
		err = held.deadLetter(ctx, m, letter.Reason, letter.description())
	} else if out.Err != nil {
		out.Action = PutBack
		err = held.abandon(ctx, m)
	} else {
		err = held.complete(ctx, m)
	}
	if err != nil {
		out.Action, out.Err = Unsettled, errors.Join(out.Err, err)
	}
	return err == nil
}
