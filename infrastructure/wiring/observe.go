package wiring

import (
	"context"
	"log/slog"

	"feedbox/application/relay"
	"feedbox/changefeed"
)

// processorLog writes what operators need to know of the change feed processor.
// Hooks have no context of their own.
func processorLog(log *slog.Logger) *changefeed.Observer {
	ctx := context.Background() //nolint:forbidigo // slog wants one, the processor's hooks have none
	return &changefeed.Observer{
		LeaseAcquired: func(e changefeed.LeaseAcquired) {
			log.InfoContext(ctx, "lease acquired", "lease", e.Lease, "epoch", e.Epoch, "from", e.From)
		},
		LeaseReleased: func(e changefeed.LeaseReleased) {
			log.InfoContext(ctx, "lease released", "lease", e.Lease, "epoch", e.Epoch, "to", e.To, "reason", e.Reason)
		},
		LeaseLost: func(e changefeed.LeaseLost) {
			log.WarnContext(ctx, "lease lost", "lease", e.Lease, "epoch", e.Epoch, "error", e.Err)
		},
		LeaseError: func(e changefeed.LeaseError) {
			if found, wrong := checks[e.Op]; wrong {
				log.ErrorContext(ctx, found.message, "lease", e.Lease, "error", e.Err, "next", found.next)
				return
			}
			log.WarnContext(ctx, "lease store", "lease", e.Lease, "op", e.Op, "error", e.Err)
		},
		ReadFailed: func(e changefeed.ReadFailed) {
			log.WarnContext(ctx, "change feed read", "lease", e.Lease, "error", e.Err, "pause", e.Pause)
		},
		BatchFailed: func(e changefeed.BatchFailed) {
			log.WarnContext(ctx, "events not sent", "lease", e.Lease, "items", e.Items, "attempt", e.Attempt, "error", e.Err)
		},
		DocumentPoisoned: func(e changefeed.DocumentPoisoned) {
			log.ErrorContext(ctx, "event given up", "lease", e.Lease, "document", e.ID, "lsn", e.LSN, "attempts", e.Attempts, "policy", string(e.Policy), "error", e.Err)
		},
		RangeStuck: func(e changefeed.RangeStuck) {
			log.ErrorContext(ctx, "range is stuck", "lease", e.Lease, "failures", e.Failures, "since", e.Since, "error", e.Err)
		},
		RangeRecovered: func(e changefeed.RangeRecovered) {
			log.InfoContext(ctx, "range goes on", "lease", e.Lease)
		},
		RangeSplit: func(e changefeed.RangeSplit) {
			log.InfoContext(ctx, "range was split", "lease", e.Lease, "children", len(e.Children))
		},
		GapRepaired: func(e changefeed.GapRepaired) {
			log.WarnContext(ctx, "no lease covered a range, one was made", "range", e.Range.String())
		},
		DuplicateHost: func(e changefeed.DuplicateHost) {
			log.ErrorContext(ctx, "another relay has this instance name, set FEEDBOX_INSTANCE", "instance", e.Host, "incarnation", e.Incarnation)
		},
	}
}

// checks are the operations of changefeed.LeaseError that look whether something holds
// on which delivery rests. Their failures do not pass by themselves, other than those of
// the lease store; somebody has to act.
var checks = map[string]struct{ message, next string }{
	"check the feed": {
		"partition keys hash differently than computed here",
		"nothing is lost: ranges as wide as a physical partition are delivered whole; but a range that becomes narrower, as when physical partitions are merged, stops: " +
			"do not merge partitions, check that the data container is partitioned by /partitionKey alone with hash version 2, and report this line as a defect",
	},
	"check tiling": {
		"two leases overlap",
		"events of the overlap are sent twice, in no order between the two: look at both with feedbox leases ls; stop all relays of this processor, " +
			"give FEEDBOX_PROCESSOR a new name and FEEDBOX_RELAY_START a time before the overlap began, and start them again",
	},
}

// relayLog writes what the relay itself has to say. Personal data stays out: keys
// are contact ids.
func relayLog(log *slog.Logger) relay.Hooks {
	return relay.Hooks{
		Retrying: func(ctx context.Context, r relay.Retry) {
			log.WarnContext(ctx, "broker does not accept", "keys", r.Keys, "round", r.Round, "pause", r.Pause,
				"class", relay.ClassOf(r.Err).String(), "reason", relay.ReasonOf(r.Err), "error", r.Err)
		},
		Parked: func(ctx context.Context, e relay.ParkedEvent) {
			log.ErrorContext(ctx, "event parked", "event_id", e.ID, "contact_id", e.Key, "action", e.Action, "reason", e.Reason, "attempts", e.Attempts)
		},
		Missing: func(ctx context.Context, m relay.Missing) {
			log.ErrorContext(ctx, "events missing from the feed", "contact_id", m.Key, "first", m.First, "last", m.Last, "lost", m.Lost)
		},
	}
}

// drainLog writes what became of the tries to drain a parked key.
func drainLog(log *slog.Logger) func(ctx context.Context, d relay.Drained) {
	return func(ctx context.Context, d relay.Drained) {
		if d.Err != nil {
			log.WarnContext(ctx, "parked events not drained", "contact_id", d.Key, "sent", d.Sent, "skipped", d.Skip, "error", d.Err)
			return
		}
		log.InfoContext(ctx, "parked events drained", "contact_id", d.Key, "sent", d.Sent, "skipped", d.Skip)
	}
}
