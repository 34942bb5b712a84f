package playground

import (
	"context"
	"maps"
	"slices"
	"time"

	"feedbox/infrastructure/lab/verify"
)

// look judges what can be judged now: order and repetition of the rounds that are open,
// and rounds whose load is over as a whole. It is called by one goroutine, once a second.
func (j *judge) look(ctx context.Context, now time.Time) error {
	j.mu.Lock()
	open := slices.Clone(j.open)
	j.mu.Unlock()
	for _, r := range open {
		j.lookLive(r)
		if err := j.close(ctx, r, now); err != nil {
			return err
		}
	}
	return nil
}

// lookLive judges order and repetition of a round that is open.
func (j *judge) lookLive(r *round) {
	j.mu.Lock()
	run := verify.Run{Messages: slices.Clone(r.messages)}
	looked := r.looked
	j.mu.Unlock()
	if looked == len(run.Messages) {
		return
	}
	run.StoreOfMessages()
	live := slices.DeleteFunc(run.Verify(), func(breach string) bool {
		id := verify.PromiseOf(breach)
		return id != "I3" && id != "I4"
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	r.live, r.looked = live, len(run.Messages)
}

// close judges a round for good if it can be.
func (j *judge) close(ctx context.Context, r *round, now time.Time) error {
	j.mu.Lock()
	doubt := r.lostCreates > 0 || len(r.unknown) > 0
	since := now.Sub(r.over)
	early := r.over.IsZero() || doubt && since < doubtful
	patient := now.Before(j.disturbs) || since < j.patience || now.Sub(j.disturbs) < j.patience || j.standsStill(now) && since < parkedPatience
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
	breaches := run.Verify()
	missing := slices.ContainsFunc(breaches, func(breach string) bool { return verify.PromiseOf(breach) == "I2" })
	if missing && patient || waits && since < parkedPatience {
		return nil
	}
	j.finish(r, &run, breaches)
	return nil
}

// standsStill tells whether nothing arrives although there is load. The caller holds mu.
func (j *judge) standsStill(now time.Time) bool {
	loading := slices.ContainsFunc(j.open, func(r *round) bool { return r.over.IsZero() })
	return loading && now.Sub(j.latest) > stalled
}

// finish adds a judged round to the verdict and forgets it. The caller holds mu.
func (j *judge) finish(r *round, run *verify.Run, breaches []string) {
	for _, breach := range breaches {
		j.verdict.add(breach)
	}
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

// finished is what is kept of a contact that was judged.
type finished struct {
	sequence int64 // the last that arrived
	parked   bool  // what follows may still come
}

// recent keeps what was put last, between remembered and twice as much.
type recent struct{ now, before map[string]finished }

// remembered is how many contacts of judged rounds are kept at least.
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
