package subscriber_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/emulator/busemu"
)

// The broker does not reply to an attach on the first connection, and its heartbeats arrive. A new
// connection works.
func TestConnectionThatDoesNotAttachIsReplaced(t *testing.T) {
	for _, sessions := range []bool{true, false} {
		t.Run(fmt.Sprintf("sessions=%t", sessions), func(t *testing.T) {
			inBubble(t, func(t *testing.T, d *broker) {
				d.server.Control(busemu.OpAttach, func(c *busemu.Call) *busemu.Fault {
					if d.connections() == 1 && c.Receiver {
						return &busemu.Fault{Loss: busemu.Drop}
					}
					return nil
				})
				handler := func(context.Context, *consumer.Event) error { return nil }
				var stop func()
				if sessions {
					stop = d.run(t, subscriber.SessionOptions{}, handler)
				} else {
					stop = d.runPlain(t, subscriber.Options{}, handler)
				}
				time.Sleep(5 * time.Minute)
				if n := d.connections(); n != 2 {
					t.Errorf("%d connections in 5 minutes, want 2", n)
				}
				began := time.Now()
				stop()
				if took := time.Since(began); took > time.Minute {
					t.Errorf("stopped after %v", took)
				}
			})
		})
	}
}

// A failed renewal is repeated until the lock duration since the last successful one has passed.
func TestFailedRenewalIsRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		stop := d.run(t, subscriber.SessionOptions{}, func(ctx context.Context, _ *consumer.Event) error {
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			return context.Cause(ctx)
		})
		d.publish(t, "k", 1)
		settle(3 * lockDuration)
		d.server.Control(busemu.OpManagement, busemu.Times(1, busemu.Fault{Err: &busemu.Error{Condition: busemu.ServerBusy, Description: "The server is busy."}}))
		settle(time.Minute)
		stop()
		d.wantOutcomes(t, "k.1 fresh handled")
	})
}
