package subscriber_test

import (
	"context"
	"testing"
	"time"

	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/emulator/busemu"
)

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
