package verify

import (
	"slices"
	"sort"
)

// Checkpoint is a position of the change feed that a relay wrote to a lease.
type Checkpoint struct {
	Feed         string // the change feed, as in Event
	Lease, Owner string
	Min, Max     string // the lease's range of effective partition keys
	LSN          int64  // everything up to it counts as sent
	Accepted     int64  // number of messages that the broker had accepted then
}

// verifyCheckpoints compares each position with the messages accepted when it was written.
func (r Run) verifyCheckpoints(v *violations) {
	if len(r.Checkpoints) == 0 {
		return
	}
	number := make(map[string]int64, len(r.Messages)) // of a message, from 1
	for i, m := range r.Messages {
		if _, again := number[m.ID]; !again {
			number[m.ID] = int64(i) + 1
		}
	}
	events := slices.Clone(r.Events)
	sort.Slice(events, func(i, j int) bool { return events[i].LSN < events[j].LSN })
	reported := make(map[string]bool)
	for at, c := range r.Checkpoints {
		for i := range events {
			e := &events[i]
			if e.LSN > c.LSN {
				break
			}
			n, arrived := number[e.ID]
			if e.LSN == 0 || e.Feed != c.Feed || e.EPK < c.Min || e.EPK >= c.Max || arrived && n <= c.Accepted || reported[e.ID] || r.Parked[e.ID] {
				continue
			}
			if !arrived && r.Expires {
				continue // a loss, which I2 checks
			}
			if before, parked := r.SetAside[e.ID]; parked && before <= at {
				continue
			}
			reported[e.ID] = true
			v.add("I6 lease %s of %s: position %d written when %d messages were accepted; event %s (key %s, sequence %d, position %d) was message %d",
				c.Lease, c.Owner, c.LSN, c.Accepted, e.ID, e.Key, e.Sequence, e.LSN, n)
		}
	}
}
