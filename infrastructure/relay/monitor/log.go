package monitor

import (
	"context"
	"log/slog"

	"feedbox/application/relay"
	"feedbox/changefeed"
)

// ProcessorLog logs the events of the change feed processor that matter to operators, with
// advice for those that need action. It does not log poison documents, because the relay logs
// the event that it parks for each.
func ProcessorLog(log *slog.Logger) *changefeed.Observer {
	ctx := context.Background() //nolint:forbidigo // slog wants one, the processor's hooks have none
	o := changefeed.LogObserver(log)
	next := o.LeaseError
	o.LeaseError = func(e changefeed.LeaseError) {
		if found, ok := findings[e.Op]; ok {
			log.ErrorContext(ctx, found.message, "lease", changefeed.LeaseName(e.Lease), "error", e.Err, "next", found.next)
			return
		}
		next(e)
	}
	o.DocumentPoisoned = nil
	o.DuplicateHost = func(e changefeed.DuplicateHost) {
		log.ErrorContext(ctx, "another relay has this instance name", "instance", e.Host, "incarnation", e.Incarnation,
			"next", "give each feedbox relay its own FEEDBOX_INSTANCE, and each relay of a program its own Options.Instance, or leave both empty: the default is unique")
	}
	return o
}

// findings are the failed checks of the processor. Unlike failures of the lease store they
// persist until an operator acts.
var findings = map[string]struct{ message, next string }{
	changefeed.OpCheckFeed: {
		"partition keys hash differently than computed here",
		"nothing is lost: ranges as wide as a physical partition are delivered whole; but a range that becomes narrower, as when physical partitions are merged, stops: " +
			"do not merge partitions, check that the data container is partitioned by /partitionKey alone with hash version 2, and report this line as a defect",
	},
	changefeed.OpCheckHistory: {
		"the store failed over; its last changes may be lost",
		"nothing after a planned failover, or with synchronous replication; otherwise changes that reuse the positions of lost ones were not sent: " +
			"feedbox leases restart sends all stored events again, in order (RELIABILITY.md, Histories)",
	},
	changefeed.OpCheckLeases: {
		"a lease has two records",
		"nothing is lost: the relay uses one of them and leaves the other alone; stop the processor of another product that wrote it, and delete that record",
	},
	changefeed.OpCheckTiling: {
		"two leases overlap",
		"events of the overlap are sent twice, in no order between the two: look at both with feedbox leases ls; stop all relays of this processor, " +
			"give FEEDBOX_PROCESSOR a new name and FEEDBOX_RELAY_START a time before the overlap began (without it all stored events are sent again), " +
			"run feedbox parked adopt for each container, and start them again",
	},
}

// RelayLog logs the events of the relay. It contains no personal data: keys are the ids of
// aggregates.
func RelayLog(log *slog.Logger) relay.Observer {
	return relay.Observer{
		Paused: func(ctx context.Context, p relay.Pause) {
			log := log
			if p.Shard != "" {
				log = log.With("shard", p.Shard)
			}
			log.WarnContext(ctx, "publishing paused: broker unavailable", "until", p.Until,
				"class", relay.ClassOf(p.Err).String(), "reason", relay.ReasonOf(p.Err), "error", p.Err)
		},
		Parked: func(ctx context.Context, e relay.ParkedEvent) {
			log.ErrorContext(ctx, "event parked", "event_id", e.ID, "key", e.Key, "action", e.Action, "reason", e.Reason, "attempts", e.Attempts)
		},
		Newer: func(ctx context.Context, e relay.ParkedEvent) {
			log.WarnContext(ctx, "parked event changed in the store; the parked copy is unchanged", "event_id", e.ID, "key", e.Key, "next", "feedbox parked retry "+e.Key+" --from-store")
		},
		Missing: func(ctx context.Context, m relay.Missing) {
			log.ErrorContext(ctx, "events missing from the feed", "key", m.Key, "first", m.First, "last", m.Last, "lost", m.Lost)
		},
	}
}

// DrainLog logs the outcome of each attempt to drain a parked key.
func DrainLog(log *slog.Logger) func(ctx context.Context, d relay.DrainReport) {
	return func(ctx context.Context, d relay.DrainReport) {
		if d.Missing > 0 {
			log.ErrorContext(ctx, "parked events are missing from the store and were not sent; to send those that still exist as events run feedbox replay --key", "key", d.Key, "missing", d.Missing)
		}
		if d.Err != nil {
			log.WarnContext(ctx, "parked events not drained", "key", d.Key, "sent", d.Sent, "differ", d.Changed, "skipped", d.Skipped, "error", d.Err)
			return
		}
		log.InfoContext(ctx, "parked events drained", "key", d.Key, "sent", d.Sent, "differ", d.Changed, "skipped", d.Skipped)
	}
}

// DrainLookLog logs a failed poll of the intents of operators.
func DrainLookLog(log *slog.Logger) func(ctx context.Context, err error) {
	return func(ctx context.Context, err error) {
		log.WarnContext(ctx, "draining paused: parked keys not readable", "error", err)
	}
}
