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

// store is what the judge reads of the database.
type store interface {
	// keys reads all documents of some partition keys.
	keys(ctx context.Context, keys []string) (aggregates []verify.Aggregate, events []verify.Event, strange []string, err error)
	// parked reads the ids of events that are parked.
	parked(ctx context.Context) (map[string]bool, error)
}

// Verdict is what has been judged so far.
type Verdict struct {
	// Broken counts the breaches by promise, "I1" to "I5". Order and repetition of rounds
	// that are open are in it.
	Broken map[string]int
	// Breaches are the latest of each promise, worded, the latest last.
	Breaches []string
	// Rounds, Contacts, Events and Messages are how much was judged for good.
	Rounds, Contacts, Events, Messages int
	// Open is how many rounds are not judged yet.
	Open int
}

// Kept tells whether no promise was found broken.
func (v *Verdict) Kept() bool { return len(v.Broken) == 0 }

// judge collects what clients are told and what arrives, and judges it by rounds.
type judge struct {
	store    store
	patience time.Duration

	mu       sync.Mutex // guards what follows
	open     []*round
	owner    map[string]*round // by contact
	done     recent            // contacts of judged rounds
	verdict  Verdict           // of judged rounds
	arrived  int64
	acked    int64
	unknown  int64
	disturbs time.Time // until then patience does not run
	latest   time.Time // when something arrived last
}

// round is one portion of load, and what became of it.
type round struct {
	acked, unknown map[string]int
	ackedAt        map[string][]time.Time // of each acknowledged change
	lostCreates    int
	messages       []verify.Message
	arrived        map[string]int // distinct ids, by contact
	ids            map[string]bool
	over           time.Time // when its load had ended; zero while it goes on
	live           []string  // breaches of order and repetition so far
	looked         int       // messages when live was found
}

const (
	// shown is how many breaches are kept, of all promises.
	shown = 20
	// doubtful is how long a request without a reply may still change something.
	doubtful = 12 * time.Second
	// stalled is how long nothing arrives under load before that is no loss, but a standstill:
	// somebody has stopped the topic, for example.
	stalled = 5 * time.Second
	// parkedPatience bounds how long a round waits for parked events, and in a standstill.
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

// told notes what a client of a round was told.
func (j *judge) told(r *round, o workload.Outcome, now time.Time) {
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

// take moves what has arrived for a contact from the round that was guessed for it.
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
	other.looked = 0
	delete(other.arrived, contact)
}

// count notes the arrival of a message.
func (r *round) count(m verify.Message) (again bool) {
	if again = r.ids[m.ID]; !again {
		r.ids[m.ID] = true
		r.arrived[m.Session]++
	}
	return again
}

// saw notes a message.
func (j *judge) saw(a *recorder.Arrival) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.arrived++
	now := time.Now()
	if !j.latest.IsZero() && now.Sub(j.latest) > stalled {
		j.disturbs = latest(j.disturbs, now) // what waited comes now
	}
	j.latest = now
	r := j.owner[a.Session]
	if r == nil {
		if last, judged := j.done.find(a.Session); judged {
			j.sawLate(a, last)
			return
		}
		if len(j.open) == 0 {
			j.verdict.add(fmt.Sprintf("I5 message %s of session %s: no client made such a contact", a.ID, a.Session))
			return
		}
		r = j.open[len(j.open)-1] // its client may not have the reply yet
		j.owner[a.Session] = r
	}
	r.messages = append(r.messages, a.Message)
	r.count(a.Message)
}

// sawLate judges a message of a contact whose round was judged.
func (j *judge) sawLate(a *recorder.Arrival, last finished) {
	switch {
	case last.parked && a.Sequence == last.sequence+1:
		j.done.put(a.Session, finished{a.Sequence, true})
	case a.Sequence <= last.sequence:
		j.verdict.add(fmt.Sprintf("I4 message %s of session %s, sequence %d, arrived twice, the second time when all of the session had", a.ID, a.Session, a.Sequence))
	default:
		j.verdict.add(fmt.Sprintf("I5 message %s of session %s, sequence %d, arrived when all stored events of the session had", a.ID, a.Session, a.Sequence))
	}
}

// end notes that the load of a round is over.
func (j *judge) end(r *round, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.over = now
}

// disturbed keeps patience from running until a time.
func (j *judge) disturbed(until time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.disturbs = latest(j.disturbs, until)
}

// onTheWay is how many acknowledged changes have no event that arrived, and since when the
// oldest of them; zero if there is none.
func (j *judge) onTheWay() (n int, since time.Time) {
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

// counts are the changes acknowledged and of unknown outcome, and the messages, so far.
func (j *judge) counts() (acked, unknown, arrived int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.acked, j.unknown, j.arrived
}

// state is the verdict of now.
func (j *judge) state() Verdict {
	j.mu.Lock()
	defer j.mu.Unlock()
	v := j.verdict
	v.Open = len(j.open)
	v.Broken = map[string]int{}
	for id, n := range j.verdict.Broken {
		v.Broken[id] = n
	}
	v.Breaches = slices.Clone(v.Breaches)
	for _, r := range j.open {
		for _, breach := range r.live {
			v.add(breach)
		}
	}
	return v
}

// add counts a breach and keeps its words. When too many are kept, the oldest of the promise
// with the most goes: many of one kind do not hide the only one of another.
func (v *Verdict) add(breach string) {
	if id := verify.PromiseOf(breach); id != "" {
		v.Broken[id]++
	}
	v.Breaches = append(v.Breaches, breach)
	if len(v.Breaches) <= shown {
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
