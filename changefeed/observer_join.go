package changefeed

// JoinObservers returns an observer that tells each of the given ones, in order.
// A nil observer is left out.
func JoinObservers(observers ...*Observer) *Observer {
	joined := &Observer{}
	for _, o := range observers {
		if o == nil {
			continue
		}
		joined = &Observer{
			LeaseAcquired:     join(joined.LeaseAcquired, o.LeaseAcquired),
			LeaseReleased:     join(joined.LeaseReleased, o.LeaseReleased),
			LeaseLost:         join(joined.LeaseLost, o.LeaseLost),
			LeaseError:        join(joined.LeaseError, o.LeaseError),
			CheckpointWritten: join(joined.CheckpointWritten, o.CheckpointWritten),
			PageRead:          join(joined.PageRead, o.PageRead),
			ReadFailed:        join(joined.ReadFailed, o.ReadFailed),
			BatchStarted:      join(joined.BatchStarted, o.BatchStarted),
			BatchHandled:      join(joined.BatchHandled, o.BatchHandled),
			BatchFailed:       join(joined.BatchFailed, o.BatchFailed),
			DocumentPoisoned:  join(joined.DocumentPoisoned, o.DocumentPoisoned),
			RangeStuck:        join(joined.RangeStuck, o.RangeStuck),
			RangeRecovered:    join(joined.RangeRecovered, o.RangeRecovered),
			RangeSplit:        join(joined.RangeSplit, o.RangeSplit),
			GapRepaired:       join(joined.GapRepaired, o.GapRepaired),
			DuplicateHost:     join(joined.DuplicateHost, o.DuplicateHost),
			Balanced:          join(joined.Balanced, o.Balanced),
		}
	}
	return joined
}

func join[E any](a, b func(E)) func(E) {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(e E) {
		a(e)
		b(e)
	}
}
