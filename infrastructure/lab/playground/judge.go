package playground

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"feedbox/infrastructure/lab/recorder"
	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/lab/workload"
)

// store has the reads of the database that the judge needs.
type store interface {
	// keys reads all documents of partition keys; strange has breaches about undecodable ones.
	keys(ctx context.Context, keys []string) (aggregates []verify.Aggregate, events []verify.Event, strange []string, err error)
	// parked reads the ids of events that are parked.
	parked(ctx context.Context) (map[string]bool, error)
}

// Verdict is the result so far.
type Verdict struct {
	// Broken counts the breaches by promise, as verify.Report does, including order and
	// duplicates of open rounds.
	Broken map[string]int
	// Breaches has the texts of the latest breaches of each promise, latest last.
	Breaches []string
	// Rounds, Contacts, Events and Messages count the data of judged rounds.
	Rounds, Contacts, Events, Messages int
	// Open is the number of rounds that are not judged yet.
	Open int
}

// Kept reports whether no breach was found.
func (v *Verdict) Kept() bool { return len(v.Broken) == 0 }

// judge collects the outcomes of clients and the messages, and judges them by rounds.
type judge struct {
	store    store
	patience time.Duration

	mu             sync.Mutex // guards the fields below
	open           []*round
	owner          map[string]*round // by contact
	done           recent            // contacts of judged rounds
	verdict        Verdict           // of judged rounds
	arrived        int64
	acked          int64
	unknown        int64
	disturbedUntil time.Time // patience starts after it
	lastArrival    time.Time // when the last message arrived
}

// round is one portion of load with its outcomes and messages.
type round struct {
	acked, unknown map[string]int
	ackedAt        map[string][]time.Time // of each acknowledged change
	lostCreates    int
	messages       []verify.Message
	arrived        map[string]int // distinct ids, by contact
	ids            map[string]bool
	over           time.Time     // when its load had ended; zero before
	live           verify.Report // breaches of order and duplicates so far
	checked        int           // number of messages when live was computed
}

const (
	// maxBreaches bounds the texts of breaches kept, over all promises.
	maxBreaches = 20
	// unknownFor is the time in which a request without a reply may still be executed.
	unknownFor = 12 * time.Second
	// stalled is the time without any message under load after which missing events do not
	// count as lost, because sending as a whole has stopped: the topic is disabled, for
	// example.
	stalled = 5 * time.Second
	// parkedPatience bounds the wait of a round for parked events, and for a stalled topic.
	parkedPatience = 5 * time.Minute
)

func newJudge(s store, patience time.Duration) *judge {
	return &judge{store: s, patience: patience, owner: map[string]*round{}, verdict: Verdict{Broken: map[string]int{}}}
}

// begin opens a round.
func (j *judge) begin() *round {
	r := &round{
		acked: map[string]int{}, unknown: map[string]int{}, ackedAt: map[string][]time.Time{},
		arrived: map[string]int{}, ids: map[string]bool{},
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.open = append(j.open, r)
	return r
}

// record records the outcome of a request of a round.
func (j *judge) record(r *round, o workload.Outcome, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case o.Contact == "":
		r.lostCreates++
		j.unknown++
		return
	case o.Outcome == workload.Acked:
		r.acked[o.Contact]++
		r.ackedAt[o.Contact] = append(r.ackedAt[o.Contact], now)
		j.acked++
	default:
		r.unknown[o.Contact]++
		j.unknown++
	}
	if other := j.owner[o.Contact]; other != r {
		r.take(other, o.Contact)
		j.owner[o.Contact] = r
	}
}

// take moves the messages of a contact from other, the round that saw guessed, to r.
func (r *round) take(other *round, contact string) {
	if other == nil {
		return
	}
	for _, m := range other.messages {
		if m.Session == contact {
			r.messages = append(r.messages, m)
			r.count(m)
		}
	}
	other.messages = slices.DeleteFunc(other.messages, func(m verify.Message) bool { return m.Session == contact })
	other.checked = 0
	delete(other.arrived, contact)
}

// count counts a message unless it arrived before.
func (r *round) count(m verify.Message) (again bool) {
	if again = r.ids[m.ID]; !again {
		r.ids[m.ID] = true
		r.arrived[m.Session]++
	}
	return again
}

// saw records a message.
func (j *judge) saw(a *recorder.Arrival) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.arrived++
	now := time.Now()
	if !j.lastArrival.IsZero() && now.Sub(j.lastArrival) > stalled {
		j.disturbedUntil = latest(j.disturbedUntil, now) // because the backlog arrives only now
	}
	j.lastArrival = now
	r := j.owner[a.Session]
	if r == nil {
		if last, judged := j.done.find(a.Session); judged {
			j.sawLate(a, last)
			return
		}
		if len(j.open) == 0 {
			j.verdict.add(fmt.Sprintf("I5 message %s of session %s: no client created this contact", a.ID, a.Session))
			return
		}
		r = j.open[len(j.open)-1] // a guess, because its client may not have the reply yet
		j.owner[a.Session] = r
	}
	r.messages = append(r.messages, a.Message)
	r.count(a.Message)
}

// sawLate judges a message of a contact whose round was judged already.
func (j *judge) sawLate(a *recorder.Arrival, last finished) {
	switch {
	case last.parked && a.Sequence == last.sequence+1:
		j.done.put(a.Session, finished{a.Sequence, true})
	case a.Sequence <= last.sequence:
		j.verdict.add(fmt.Sprintf("I4 message %s of session %s, sequence %d, arrived twice, the second time after its round was judged", a.ID, a.Session, a.Sequence))
	default:
		j.verdict.add(fmt.Sprintf("I5 message %s of session %s, sequence %d, arrived after all stored events of the session", a.ID, a.Session, a.Sequence))
	}
}

// end records the end of the load of a round.
func (j *judge) end(r *round, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.over = now
}

// disturbed starts patience after a time, the end of a fault.
func (j *judge) disturbed(until time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.disturbedUntil = latest(j.disturbedUntil, until)
}

// inFlight returns the number of acknowledged changes whose event has not arrived, and the
// time of the oldest; zero if there is none.
func (j *judge) inFlight() (n int, since time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.open {
		for contact, at := range r.ackedAt {
			missing := at[min(r.arrived[contact], len(at)):]
			n += len(missing)
			if len(missing) > 0 && (since.IsZero() || missing[0].Before(since)) {
				since = missing[0]
			}
		}
	}
	return n, since
}

// counts returns the number of changes acknowledged, of those with unknown outcome, and of
// messages.
func (j *judge) counts() (acked, unknown, arrived int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.acked, j.unknown, j.arrived
}

// state returns the current verdict.
func (j *judge) state() Verdict {
	j.mu.Lock()
	defer j.mu.Unlock()
	v := j.verdict
	v.Open = len(j.open)
	v.Broken = maps.Clone(v.Broken)
	v.Breaches = slices.Clone(v.Breaches)
	for _, r := range j.open {
		v.merge(r.live)
	}
	return v
}

// merge adds the breaches of a report.
func (v *Verdict) merge(r verify.Report) {
	for id, n := range r.Broken {
		v.Broken[id] += n
	}
	for _, breach := range r.Examples {
		v.keep(breach)
	}
}

// add counts a breach and keeps its text.
func (v *Verdict) add(breach string) {
	v.Broken[verify.PromiseOf(breach)]++
	v.keep(breach)
}

// keep keeps the text of a breach. If there are too many texts, it drops the oldest of the promise
// with the most, so that many breaches of one promise do not hide one of another.
func (v *Verdict) keep(breach string) {
	v.Breaches = append(v.Breaches, breach)
	if len(v.Breaches) <= maxBreaches {
		return
	}
	kept := map[string]int{}
	for _, b := range v.Breaches {
		kept[verify.PromiseOf(b)]++
	}
	most := slices.Max(slices.Collect(maps.Values(kept)))
	oldest := slices.IndexFunc(v.Breaches, func(b string) bool { return kept[verify.PromiseOf(b)] == most })
	v.Breaches = slices.Delete(v.Breaches, oldest, oldest+1)
}
