package playground

import (
	"context"
	"maps"
	"slices"
	"time"

	"feedbox/infrastructure/lab/verify"
)

// evaluate checks order and duplicates of open rounds, and judges the rounds whose load is over.
// One goroutine calls it, once a second.
func (j *judge) evaluate(ctx context.Context, now time.Time) error {
	j.mu.Lock()
	open := slices.Clone(j.open)
	j.mu.Unlock()
	for _, r := range open {
		j.checkOrder(r)
		if err := j.close(ctx, r, now); err != nil {
			return err
		}
	}
	return nil
}

// checkOrder checks order and duplicates of an open round.
func (j *judge) checkOrder(r *round) {
	j.mu.Lock()
	run := verify.Run{Messages: slices.Clone(r.messages)}
	checked := r.checked
	j.mu.Unlock()
	if checked == len(run.Messages) {
		return
	}
	run.StoreOfMessages()
	live := run.Report().Only(func(id string) bool { return id == "I3" || id == "I4" })
	j.mu.Lock()
	defer j.mu.Unlock()
	r.live, r.checked = live, len(run.Messages)
}

// close judges a round for good, if its load is over and its events have arrived or patience
// is over.
func (j *judge) close(ctx context.Context, r *round, now time.Time) error {
	j.mu.Lock()
	doubt := r.lostCreates > 0 || len(r.unknown) > 0
	since := now.Sub(r.over)
	early := r.over.IsZero() || doubt && since < unknownFor
	patient := now.Before(j.disturbedUntil) || since < j.patience || now.Sub(j.disturbedUntil) < j.patience || j.isStalled(now) && since < parkedPatience
	var keys []string
	for contact, owner := range j.owner {
		if owner == r {
			keys = append(keys, contact)
		}
	}
	j.mu.Unlock()
	if early {
		return nil
	}
	run := verify.Run{}
	var err error
	if run.Aggregates, run.Events, run.Other, err = j.store.keys(ctx, keys); err != nil {
		return err
	}
	if run.Parked, err = j.store.parked(ctx); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	run.Acked, run.Unknown, run.LostCreates, run.Messages = r.acked, r.unknown, r.lostCreates, r.messages
	waits := slices.ContainsFunc(run.Events, func(e verify.Event) bool { return run.Parked[e.ID] && !r.ids[e.ID] })
	report := run.Report()
	if report.Broken["I2"] > 0 && patient || waits && since < parkedPatience {
		return nil
	}
	j.finish(r, &run, report)
	return nil
}

// isStalled reports whether no message arrives although there is load. The caller holds mu.
func (j *judge) isStalled(now time.Time) bool {
	loading := slices.ContainsFunc(j.open, func(r *round) bool { return r.over.IsZero() })
	return loading && now.Sub(j.lastArrival) > stalled
}

// finish adds a judged round to the verdict and drops its data. The caller holds mu.
func (j *judge) finish(r *round, run *verify.Run, report verify.Report) {
	j.verdict.merge(report)
	j.verdict.Rounds++
	j.verdict.Contacts += len(run.Aggregates)
	j.verdict.Events += len(run.Events)
	j.verdict.Messages += len(run.Messages)
	last := map[string]finished{}
	for _, m := range run.Messages {
		last[m.Session] = finished{max(last[m.Session].sequence, m.Sequence), false}
	}
	for _, e := range run.Events {
		if f := last[e.Key]; run.Parked[e.ID] {
			last[e.Key] = finished{f.sequence, true}
		}
	}
	for contact, f := range last {
		j.done.put(contact, f)
	}
	maps.DeleteFunc(j.owner, func(_ string, owner *round) bool { return owner == r })
	j.open = slices.DeleteFunc(j.open, func(other *round) bool { return other == r })
}

// finished is the state kept of a judged contact.
type finished struct {
	sequence int64 // of the last event that arrived
	parked   bool  // later events may still arrive
}

// recent keeps the latest entries, between remembered and twice as many.
type recent struct{ now, before map[string]finished }

// remembered is the minimum number of judged contacts kept.
const remembered = 20_000

func (r *recent) put(contact string, f finished) {
	if r.now == nil || len(r.now) >= remembered {
		r.before, r.now = r.now, map[string]finished{}
	}
	r.now[contact] = f
}

func (r *recent) find(contact string) (finished, bool) {
	if f, ok := r.now[contact]; ok {
		return f, true
	}
	f, ok := r.before[contact]
	return f, ok
}
