package subscriber_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/emulator/busemu"
)

func TestLockOfALongSessionIsRenewed(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		renewals := d.count(busemu.OpManagement)
		d.publish(t, "a", 1, 2, 3)
		stop := d.run(t, subscriber.SessionOptions{}, func(context.Context, *consumer.Event) error {
			time.Sleep(time.Minute) // six lock durations
			return nil
		})
		settle(5 * time.Minute)
		stop()
		d.wantOutcomes(t, "a.1 fresh handled", "a.2 fresh handled", "a.3 fresh handled")
		if n := renewals.Load(); n < 20 || n > 40 {
			t.Errorf("%d renewals of a 10 s lock in 2 minutes, want one each 5 s", n)
		}
	})
}

// count counts the calls of an operation.
func (d *broker) count(op busemu.Operation) *atomic.Int64 {
	var n atomic.Int64
	d.server.Control(op, func(*busemu.Call) *busemu.Fault { n.Add(1); return nil })
	return &n
}

// All sessions share one token, and the lock of a short session is not renewed.
func TestSessionUsesOneLinkAndNoRenewal(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		for k := range 100 {
			d.publish(t, fmt.Sprintf("k%d", k), 1)
		}
		tokens, requests, links := d.count(busemu.OpPutToken), d.count(busemu.OpManagement), d.count(busemu.OpAttach)
		stop := d.run(t, subscriber.SessionOptions{}, nil)
		settle(time.Second)
		if tokens.Load() != 1 || requests.Load() != 0 || links.Load() > 100+8 || d.connections() != 1 {
			t.Errorf("100 sessions: %d tokens, %d requests, %d links, %d connections; want 1, 0, 108 at most, 1", tokens.Load(), requests.Load(), links.Load(), d.connections())
		}
		stop()
	})
}

func TestLostLockEndsTheHandler(t *testing.T) {
	for name, lose := range map[string]func(d *broker) error{
		"expired": func(d *broker) error { return d.server.ExpireSession(entity, "k") },
		"detached": func(d *broker) error {
			return d.server.Detach(entity, &busemu.Error{Condition: busemu.DetachForced, Description: "The link was detached."})
		},
		"connection lost": func(d *broker) error { d.cut(); return nil },
		"tokens expired":  func(d *broker) error { d.server.ExpireTokens(); return nil },
		"not renewed": func(d *broker) error {
			d.server.Control(busemu.OpManagement, busemu.Times(5, busemu.Fault{Err: &busemu.Error{Condition: busemu.ServerBusy, Description: "The server is busy."}}))
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, d *broker) {
				var cause error
				calls := 0
				stop := d.run(t, subscriber.SessionOptions{}, func(ctx context.Context, _ *consumer.Event) error {
					if calls++; calls > 1 {
						return nil
					}
					<-ctx.Done()
					cause = context.Cause(ctx)
					return cause
				})
				d.publish(t, "k", 1, 2)
				settle(time.Second)
				if err := lose(d); err != nil {
					t.Fatal(err)
				}
				settle(time.Minute)
				stop()
				if !errors.Is(cause, consumer.ErrLockLost) {
					t.Errorf("cause %v, want ErrLockLost", cause)
				}
				d.wantHandled(t, map[string][]string{"k": {"k.1", "k.1", "k.2"}})
				if d.left(t) != 0 {
					t.Errorf("%d messages left", d.left(t))
				}
			})
		})
	}
}

// A handler that ignores its context keeps its key: the next owner of the session in the same process
// waits for it.
func TestKeyHasOneOwner(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		running, most := atomic.Int64{}, atomic.Int64{}
		stop := d.run(t, subscriber.SessionOptions{}, func(context.Context, *consumer.Event) error {
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(3 * time.Second)
			running.Add(-1)
			return nil
		})
		d.publish(t, "k", numbers(1, 5)...)
		for range 3 {
			settle(time.Second)
			d.cut()
		}
		settle(time.Minute)
		stop()
		if most.Load() != 1 {
			t.Errorf("%d handlers of one key at a time", most.Load())
		}
		d.wantHandled(t, map[string][]string{"k": ids("k", 1, 5)}) // the inbox dropped redelivered events
	})
}

func TestProcessorReconnectsAfterALostConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		want := map[string][]string{}
		for k := range 6 {
			key := fmt.Sprintf("k%d", k)
			d.publish(t, key, numbers(1, 20)...)
			want[key] = ids(key, 1, 20)
		}
		stop := d.run(t, subscriber.SessionOptions{Sessions: 3}, func(context.Context, *consumer.Event) error {
			time.Sleep(200 * time.Millisecond)
			return nil
		})
		for range 5 {
			time.Sleep(time.Second)
			d.cut()
		}
		settle(time.Minute)
		stop()
		d.wantHandled(t, want)
		if n := d.connections(); n != 6 {
			t.Errorf("connected %d times, want 6", n)
		}
	})
}

func TestProcessorSurvivesAnOutage(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		remove := d.server.Control(busemu.OpAny, busemu.Always(busemu.Fault{Err: &busemu.Error{Condition: busemu.InternalError, Description: "The service is away."}}))
		stop := d.run(t, subscriber.SessionOptions{Sessions: 1}, nil)
		settle(5 * time.Minute)
		remove()
		d.publish(t, "k", 1)
		settle(time.Minute)
		stop()
		d.wantOutcomes(t, "k.1 fresh handled")
	})
}

// Sessions stay open while tokens are refreshed.
func TestTokensAreRefreshed(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		tokens := d.count(busemu.OpPutToken)
		stop := d.run(t, subscriber.SessionOptions{SessionMax: -1}, func(context.Context, *consumer.Event) error {
			time.Sleep(5 * time.Hour)
			return nil
		})
		session := "k"
		if err := d.server.Send(t.Context(), topic, busemu.Message{ID: "k.1", Session: &session}); err != nil { // the publisher would put tokens as well
			t.Fatal(err)
		}
		settle(6 * time.Hour)
		stop()
		d.wantOutcomes(t, "k.1 fresh handled")
		if n := tokens.Load(); n < 10 || n > 14 || d.connections() != 1 {
			t.Errorf("%d tokens on %d connections in 6 hours, want one an hour for the source and one for $management, and 1 connection", n, d.connections())
		}
	})
}

// After a refused or lost settlement the event is redelivered, and the inbox drops it. No later event is
// handled before.
func TestLostSettlementsCauseNoRepeatAndNoDisorder(t *testing.T) {
	for name, fault := range map[string]busemu.Fault{
		"refused":    {Err: &busemu.Error{Condition: busemu.MessageLockLost, Description: "The lock supplied is invalid."}},
		"unanswered": {Execute: true, Loss: busemu.Drop},
		"cut":        {Loss: busemu.Reset},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, d *broker) {
				var n atomic.Int64
				d.server.Control(busemu.OpSettle, func(*busemu.Call) *busemu.Fault {
					if n.Add(1)%7 == 3 {
						return &fault
					}
					return nil
				})
				stop := d.run(t, subscriber.SessionOptions{Prefetch: 4}, nil)
				d.publish(t, "k", numbers(1, 30)...)
				settle(10 * time.Minute)
				stop()
				d.wantHandled(t, map[string][]string{"k": ids("k", 1, 30)})
				if d.left(t) != 0 {
					t.Errorf("%d messages left", d.left(t))
				}
				if !slices.ContainsFunc(d.outcomes, func(o string) bool { return o[len(o)-9:] == "unsettled" }) {
					t.Error("no settlement was lost, so the test proves nothing")
				}
			})
		})
	}
}

// If the broker does not accept a dead letter, the redelivered event is dead-lettered. It would be lost if
// it had been recorded in the inbox before.
func TestRefusedDeadLetterIsRetried(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.server.Control(busemu.OpSettle, busemu.Times(1, busemu.Fault{Err: &busemu.Error{Condition: busemu.MessageLockLost, Description: "The lock supplied is invalid."}}))
		stop := d.run(t, subscriber.SessionOptions{}, func(context.Context, *consumer.Event) error {
			return consumer.DeadLetter("unknown", nil)
		})
		d.publish(t, "k", 1)
		settle(10 * time.Minute)
		stop()
		d.wantOutcomes(t, "k.1 fresh unsettled", "k.1 fresh dead_lettered")
	})
}

// Outcomes are observed after the confirmation of the broker, in the order of their session.
func TestOutcomesAreObservedAfterConfirmation(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		hold := make(chan struct{})
		d.server.Control(busemu.OpSettle, busemu.Always(busemu.Fault{Hold: hold}))
		stop := d.run(t, subscriber.SessionOptions{}, nil)
		d.publish(t, "k", 1, 2, 3)
		settle(time.Second)
		d.wantHandled(t, map[string][]string{"k": ids("k", 1, 3)}) // handled before the confirmation
		d.wantOutcomes(t)
		close(hold)
		synctest.Wait()
		d.wantOutcomes(t, "k.1 fresh handled", "k.2 fresh handled", "k.3 fresh handled")
		stop()
	})
}

func TestEventsWaitWhileTheInboxFails(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		box := &failingInbox{Inbox: consumer.NewMemoryInbox(0)}
		stop := d.run(t, subscriber.SessionOptions{Inbox: box}, nil)
		box.down.Store(true)
		d.publish(t, "k", 1, 2)
		settle(10 * time.Second)
		if d.left(t) != 2 {
			t.Errorf("%d messages left while the inbox was down, want 2", d.left(t))
		}
		if n := box.failures.Load(); n > 20 {
			t.Errorf("the inbox was read %d times in 10 s, want one read a second", n)
		}
		box.down.Store(false)
		settle(time.Minute)
		stop()
		d.wantInOrder(t, map[string][]string{"k": ids("k", 1, 2)})
		if d.left(t) != 0 {
			t.Errorf("%d messages left", d.left(t))
		}
	})
}

type failingInbox struct {
	consumer.Inbox
	down     atomic.Bool
	failures atomic.Int64 // of Last
}

func (b *failingInbox) Last(ctx context.Context, key string) (consumer.Mark, error) {
	if b.down.Load() {
		if b.failures.Add(1) > 100 { // otherwise a busy loop would not let the time of the bubble pass
			time.Sleep(time.Minute)
		}
		return consumer.Mark{}, errors.New("the inbox is away")
	}
	return b.Inbox.Last(ctx, key)
}

func (b *failingInbox) Record(ctx context.Context, key string, m consumer.Mark) error {
	if b.down.Load() {
		return errors.New("the inbox is away")
	}
	return b.Inbox.Record(ctx, key, m)
}

// Closing a session before the confirmation of its completions would return their events.
func TestSessionClosesAfterItsCompletionsAreConfirmed(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.server.Control(busemu.OpSettle, busemu.Times(1, busemu.Fault{Delay: 5 * time.Second}))
		d.publish(t, "k", 1, 2)
		stop := d.run(t, subscriber.SessionOptions{SessionIdle: time.Second}, nil)
		settle(time.Minute)
		stop()
		d.wantOutcomes(t, "k.1 fresh handled", "k.2 fresh handled")
	})
}

// Requests for sessions time out at the same time and are repeated. go-amqp reuses the handles of those
// links before it has detached them.
func TestConcurrentAcceptsTimeOut(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		log := &countingHandler{}
		stop := d.run(t, subscriber.SessionOptions{Logger: slog.New(log)}, nil)
		settle(time.Hour)
		d.publish(t, "k", 1)
		settle(time.Second)
		stop()
		d.wantOutcomes(t, "k.1 fresh handled")
		if n := log.n.Load(); n != 0 || d.connections() != 1 {
			t.Errorf("%d warnings, %d connections in an idle hour", n, d.connections())
		}
	})
}

// countingHandler counts log records.
type countingHandler struct {
	slog.Handler
	n atomic.Int64
}

func (h *countingHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *countingHandler) Handle(context.Context, slog.Record) error {
	h.n.Add(1)
	return nil
}

// An unavailable broker may have granted the session to another consumer, so the handler ends when the lock
// duration has passed without a renewal.
func TestLockIsLostAfterFailedRenewals(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		var lost time.Duration
		began := time.Now()
		stop := d.run(t, subscriber.SessionOptions{}, func(ctx context.Context, _ *consumer.Event) error {
			if lost == 0 {
				<-ctx.Done()
				lost = time.Since(began)
			}
			return ctx.Err()
		})
		d.publish(t, "k", 1)
		settle(time.Second)
		silence := make(chan struct{})
		d.mu.Lock()
		d.silence = silence
		d.mu.Unlock()
		settle(25 * time.Second)
		if lost < lockDuration || lost > lockDuration+time.Second {
			t.Errorf("the handler ended after %v without a response, want the lock duration: another process has the session then", lost)
		}
		d.mu.Lock()
		d.silence = nil
		d.mu.Unlock()
		close(silence)
		settle(time.Minute)
		stop()
		if d.left(t) != 0 {
			t.Errorf("%d messages left", d.left(t))
		}
	})
}

// A service that is replaced cancels requests for sessions at once. They must not follow each other without a pause.
func TestCancelledAcceptsAreRepeatedWithPauses(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		var accepts atomic.Int64
		end := time.Now().Add(30 * time.Second)
		d.server.Control(busemu.OpAttach, func(*busemu.Call) *busemu.Fault {
			if accepts.Add(1) > 2000 || time.Now().After(end) {
				return nil
			}
			return &busemu.Fault{Err: &busemu.Error{Condition: "com.microsoft:operation-cancelled", Description: "The operation was canceled."}}
		})
		stop := d.run(t, subscriber.SessionOptions{Sessions: 2}, nil)
		settle(31 * time.Second)
		if n := accepts.Load(); n > 100 {
			t.Errorf("%d requests for a session in half a minute", n)
		}
		d.publish(t, "k", 1)
		settle(2 * time.Minute)
		stop()
		d.wantHandled(t, map[string][]string{"k": {"k.1"}})
	})
}
